// Verdict JSON from anywhere: what is read, written and read again is the same verdict; the outline
// agrees with the whole on all that it keeps.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "model/verdict_json.h"
#include "model/verdict_outline.h"

namespace assay {
namespace {

// Without what an outline leaves out.
std::string OutlineText(Verdict verdict) {
  verdict.samples.clear();
  verdict.log.clear();
  verdict.work.reset();
  verdict.roofline.reset();
  verdict.problem.signature.clear();
  if (verdict.correctness) verdict.correctness->draws.clear();
  return VerdictToJson(verdict, -1);
}

void CheckRefused(const Result<Verdict>& verdict) {
  ASSAY_CHECK(verdict.error().kind == ErrorKind::kUsage && !verdict.error().message.empty());
}

}  // namespace
}  // namespace assay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto verdict = VerdictFromJson(text);
  const auto outline = VerdictOutlineFromJson(text);
  if (!outline) CheckRefused(outline);
  if (!verdict) return CheckRefused(verdict), 0;
  ASSAY_CHECK(outline && OutlineText(*outline) == OutlineText(*verdict));
  for (const int indent : {-1, 2}) {
    const std::string written = VerdictToJson(*verdict, indent);
    const auto read = VerdictFromJson(written);
    ASSAY_CHECK(read && VerdictToJson(*read, indent) == written);
  }
  return 0;
}
