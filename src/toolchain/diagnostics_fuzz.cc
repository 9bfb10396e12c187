// A compiler's output, which the candidate shapes: one bounded line without a byte that a terminal
// would obey comes out of it, and never nothing.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "toolchain/build.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string message = assay::FirstDiagnostic({reinterpret_cast<const char*>(data), size});
  ASSAY_CHECK(!message.empty() && message.size() <= 303);
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    ASSAY_CHECK(byte >= 0x20 && byte != 0x7f);
  }
  return 0;
}
