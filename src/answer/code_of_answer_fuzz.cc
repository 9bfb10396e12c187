// Any bytes as an answer, and as its parent: there is a source of the wanted form, or a text.
#include <cstddef>
#include <cstdint>

#include "answer/code_of_answer.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t middle = text.find('\x01');
  const std::string_view parent =
      middle == std::string_view::npos ? std::string_view() : text.substr(middle + 1);
  for (const assay::CodeForm wanted : {assay::CodeForm::kAny, assay::CodeForm::kPython}) {
    const auto code = assay::CodeOfAnswer(text.substr(0, middle), wanted, parent);
    if (!code) {
      ASSAY_CHECK(!code.error().empty());
      continue;
    }
    ASSAY_CHECK(code->source.ends_with('\n'));
    ASSAY_CHECK(code->form != assay::CodeForm::kAny);
    ASSAY_CHECK(wanted == assay::CodeForm::kAny || code->form == wanted);
  }
  return 0;
}
