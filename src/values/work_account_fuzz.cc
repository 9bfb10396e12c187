// Parses a reference host's account of a problem, as JSON. Figures must be finite and not negative,
// lists and names bounded, and text that cannot be read an error of the machine.
#include <cmath>

#include "base/check.h"
#include "values/work_account.h"

namespace {

void CheckFigure(double figure) { ASSAY_CHECK(std::isfinite(figure) && figure >= 0); }

void CheckLines(const std::vector<std::string>& lines) {
  ASSAY_CHECK(lines.size() <= assay::wire::kArgumentsMax);
  for (const std::string& line : lines) ASSAY_CHECK(line.size() <= 200);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay;
  const auto account = ParseWorkAccount({reinterpret_cast<const char*>(data), size});
  if (!account) {
    ASSAY_CHECK(account.error().kind == ErrorKind::kEnvironment);
    ASSAY_CHECK(!account.error().message.empty());
    return 0;
  }
  for (const auto* lines : {&account->inputs, &account->parameters, &account->outputs})
    CheckLines(*lines);
  CheckFigure(account->peak_bytes);
  for (const OperatorWork& work : account->operators) {
    ASSAY_CHECK(work.name.size() <= 100);
    for (const double figure : {work.calls, work.operations, work.read_bytes, work.written_bytes})
      CheckFigure(figure);
  }
  const Work work = WorkOf(1000, 500, *account);
  ASSAY_CHECK(work.written_bytes >= 0 && work.written_bytes <= work.bytes);
  return 0;
}
