// What a tool and the candidate's process printed: few and short findings come out of it, or one
// line that says why there are none.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "toolchain/compute_sanitizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const assay::SanitizerRecord record =
      assay::ReadSanitizerOutput("memcheck", {reinterpret_cast<const char*>(data), size});
  ASSAY_CHECK(record.errors >= 0 && record.findings.size() <= 5);
  ASSAY_CHECK(record.errors > 0 || record.findings.empty());
  ASSAY_CHECK(record.failure.empty() || (record.errors == 0 && record.failure.size() <= 400));
  ASSAY_CHECK(record.failure.find('\n') == std::string::npos);
  for (const std::string& finding : record.findings)
    ASSAY_CHECK(!finding.empty() && finding.size() <= 300 &&
                finding.find('\n') == std::string::npos);
  return 0;
}
