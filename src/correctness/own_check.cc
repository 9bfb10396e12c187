#include "correctness/own_check.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "rules/plain_faults.h"
#include "values/slot_layout.h"

namespace assay {
namespace {

bool IsReferences(const OutputView& view) {
  const size_t size_bytes = static_cast<size_t>(view.count) * wire::ElementBytes(view.dtype);
  return size_bytes == 0 || std::memcmp(view.candidate, view.reference, size_bytes) == 0;
}

}  // namespace

CallCheck CheckByProblem(std::span<const OutputView> views, std::span<const std::byte> outputs,
                         const AskCheck& ask) {
  CallCheck check;
  for (const OutputView& view : views) check.elements += view.count;
  if (std::ranges::all_of(views, IsReferences)) return check;
  const auto fail = [&](Hint hint) {
    check.passed = false;
    check.by_check = true;
    check.error_ratio = std::numeric_limits<double>::infinity();
    check.hint = std::move(hint.text);
    check.mistake = hint.mistake;
    return check;
  };
  for (const OutputView& view : views)
    if (auto fault = PlainFault(view, PoisonByte(view.dtype))) return fail(std::move(*fault));
  auto said = ask(outputs);
  if (!said) {
    check.passed = false;
    check.trouble = std::move(said).error();
    check.hint = check.trouble->message;
    return check;
  }
  return *said ? fail({"the problem's check: " + **said}) : check;
}

HostResult<std::optional<std::string>> AskAboutReference(Oracle& oracle, uint32_t master) {
  const std::byte* outputs = oracle.outputs(master);
  // A copy from the device holds until the next call.
  const std::vector<std::byte> copy(outputs, outputs + oracle.plan().output_stride);
  return oracle.AskCheck(master, copy);
}

}  // namespace assay
