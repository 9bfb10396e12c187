#include "correctness/state_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/trace.h"

namespace assay {
namespace {

// Sums of a whole batch come to different roundings by their order, so state is held to the bounds
// of a coarse class. An update that is left out is far beyond them.
constexpr PrecisionClass kRequired = PrecisionClass::kTf32;

OutputView ViewOf(const StateTensor& tensor, const ModuleState& expected, const std::byte* held) {
  OutputView view;
  view.name = tensor.name;
  view.dtype = tensor.dtype;
  view.shape = tensor.shape;
  view.count = tensor.count;
  view.candidate = held + tensor.offset;
  view.reference = expected.memory.data() + tensor.offset;
  return view;
}

std::string WrongText(const StateTensor& tensor, const OutputComparison& comparison) {
  std::string text =
      fmt::format("forward of the reference changes {}, and this one leaves it ", tensor.name);
  if (!comparison.mismatch) return text + "otherwise";
  const Mismatch& mismatch = *comparison.mismatch;
  const double expected =
      mismatch.whole ? static_cast<double>(mismatch.whole->expected) : mismatch.expected;
  const double got = mismatch.whole ? static_cast<double>(mismatch.whole->got) : mismatch.got;
  const std::string place =
      mismatch.index.empty() ? "" : fmt::format(" at [{}]", fmt::join(mismatch.index, ", "));
  return text + fmt::format("with {:g}{} where {:g} is expected", got, place, expected);
}

}  // namespace

StateCheck CompareState(const ModuleState& expected, std::span<const std::byte> held, uint64_t bits,
                        const CompareRule& rule) {
  StateCheck check;
  CompareRule state_rule = rule;
  if (state_rule.required < kRequired) state_rule.required = kRequired;
  std::vector<std::string> missing;
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    const StateTensor& tensor = expected.tensors[i];
    if ((bits >> i & 1) == 0) {
      missing.push_back(tensor.name);
      continue;
    }
    const auto comparison =
        CompareWithReference(ViewOf(tensor, expected, held.data()), state_rule, ReferenceError{});
    if (comparison.passed) continue;
    check.wrong = WrongText(tensor, comparison);
    break;
  }
  if (!missing.empty())
    check.note = fmt::format("forward changes {}, which the candidate does not have: not compared",
                             fmt::join(missing, ", "));
  else if (expected.left_out > 0)
    check.note = fmt::format("forward changes {} more tensors of its module: not compared",
                             expected.left_out);
  return check;
}

HostResult<StateCheck> CheckState(Oracle& oracle, LiveHost& host, uint32_t slot, uint32_t master,
                                  const CompareRule& rule, double timeout_s) {
  const Span span("compare the module's state");
  auto expected = oracle.StateAfter(master);
  if (!expected) return std::unexpected(expected.error());
  if (auto left = host.host.LeaveBlocks(timeout_s); !left) return std::unexpected(left.error());
  host.slot_count = 0;
  auto memory = StateMemory();
  if (!memory) return HostFailed(HostTrouble::Kind::kEnvironment, memory.error().message);
  std::memcpy(memory->data(), expected->memory.data(), expected->text_bytes);
  const uint64_t args[] = {slot, expected->text_bytes};
  auto told = host.host.Request(wire::FrameKind::kState, args, timeout_s, memory->fd());
  if (!told) return std::unexpected(told.error());
  // The host could write on while it is compared.
  uint64_t end = 0;
  for (const StateTensor& tensor : expected->tensors) end = std::max(end, tensor.end());
  const std::vector<std::byte> held(memory->data(), memory->data() + end);
  return CompareState(*expected, held, told->args[0], rule);
}

}  // namespace assay
