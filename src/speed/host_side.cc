#include "speed/host_side.h"

#include <algorithm>
#include <utility>

#include "base/defences.h"
#include "correctness/device_checks.h"
#include "correctness/rounding.h"

namespace assay {
namespace {

// Time that a host may take to prepare slots anew.
constexpr double kEnterAgainS = 120;

void Add(CallCheck check, BlockCheck* block) {
  ++block->calls;
  block->error_ratio = std::max(block->error_ratio, check.error_ratio);
  if (!check.passed) block->wrong = std::move(check);
}

}  // namespace

HostResult<void> HostSide::EnterAgain() { return EnterBlocks(host_, values_.live, kEnterAgainS); }

void HostSide::Flush(std::span<const uint32_t> slots) { values_.live.FlushInputs(slots); }

HostResult<SideBlock> HostSide::RunBlock(std::span<const uint32_t> order, BlockMode mode) {
  host_.host.SetResults(mode.results);
  host_.host.Replay(mode.replay);
  auto block = values_.live.RunBlock(host_.host, host_.outputs, order, timeout_s_);
  if (!block) return std::unexpected(block.error());
  return SideBlock{*block, host_.host.Replayed()};
}

HostResult<void> HostSide::RunUncounted(std::span<const uint32_t> order, BlockMode mode) {
  host_.host.SetResults(mode.results);
  host_.host.Replay(mode.replay);
  return values_.live.RunUncounted(host_.host, host_.outputs, order, timeout_s_);
}

wire::DrawKind HostSide::KindOf(uint32_t master, const Draw* probe) const {
  return probe != nullptr ? probe->kind : values_.oracle.kind_of(master);
}

std::span<const ReferenceError> HostSide::ErrorsOf(wire::DrawKind kind) const {
  return kind == wire::DrawKind::kSigns ? values_.draws->errors_of_signs()
                                        : values_.draws->reference_errors();
}

CallCheck HostSide::CheckCall(uint32_t slot, uint32_t master, const Draw* probe,
                              const std::optional<CallCheck>& settled) {
  const wire::DrawKind kind = KindOf(master, probe);
  HintContext context;
  context.draw_kind = DrawKindName(kind);
  context.ordinary_passed = true;
  CallCheck check = settled
                        ? *settled
                        : assay::CheckCall(values_.oracle, values_.live, host_, slot, master,
                                           probe != nullptr, values_.rule, ErrorsOf(kind), context);
  if (check.passed) return check;
  if (probe == nullptr)
    return kind == wire::DrawKind::kSigns ? CheckAgain(slot, master, context, std::move(check))
                                          : check;
  if (check.part) return check;
  const RoundingSetup rounding{*values_.options, values_.oracle, values_.rule,
                               values_.draws->reference_errors()};
  auto again = CheckForRounding(rounding, *probe, master, values_.live.Written(host_.outputs, slot),
                                context, check);
  // An interrupt ends the gate before what is found here is told.
  return again ? std::move(*again) : check;
}

CallCheck HostSide::CheckAgain(uint32_t slot, uint32_t master, const HintContext& context,
                               CallCheck check) {
  if (!check.mismatch || values_.rule.allclose) return check;
  const wire::Plan& plan = values_.oracle.plan();
  const auto copied = [](const std::byte* bytes, uint64_t size_bytes) {
    return std::vector<std::byte>(bytes, bytes + size_bytes);
  };
  // The host may go on meanwhile, and the oracle's copy of one master gives way to another's.
  const auto written = copied(values_.live.Written(host_.outputs, slot), plan.output_stride);
  const auto inputs = copied(values_.oracle.inputs(master), plan.input_stride);
  const Draw draw{wire::DrawKind::kSigns, values_.oracle.seed_of(master), 0, false, {}};
  const auto made =
      values_.draws->MasterOfOther(values_.oracle, draw, values_.oracle.weights_of(master));
  if (made && copied(values_.oracle.inputs(*made), plan.input_stride) == inputs) {
    const auto errors = values_.draws->reference_errors();
    check =
        CheckOutputs(values_.oracle, written.data(), *made, true, values_.rule, errors, context);
    const RoundingSetup rounding{*values_.options, values_.oracle, values_.rule, errors};
    auto again = CheckForRounding(rounding, draw, *made, written.data(), context, check);
    if (again) check = std::move(*again);
  }
  // Trouble of the oracle ends the gate with the next values that it draws.
  static_cast<void>(values_.draws->Restore(values_.oracle));
  return check;
}

BlockCheck HostSide::CheckOne(uint32_t slot, uint32_t master, const Draw* probe) {
  BlockCheck checked;
  if (!Stands(Defence::kTimedChecks)) return checked;
  Add(CheckCall(slot, master, probe, std::nullopt), &checked);
  return checked;
}

BlockCheck HostSide::Check(std::span<const uint32_t> called, const FilledSlots& filled) {
  BlockCheck checked;
  if (!Stands(Defence::kTimedChecks)) return checked;
  std::vector<CheckedCall> calls;
  for (const uint32_t slot : called) {
    const bool is_probe = filled.ProbeIn(slot) != nullptr;
    const wire::DrawKind kind = KindOf(filled.masters[slot], filled.ProbeIn(slot));
    calls.push_back({slot, filled.masters[slot], is_probe, !is_probe, ErrorsOf(kind)});
  }
  auto settled =
      CheckWhereTheyLie(values_.oracle, values_.live, host_.outputs, calls, values_.rule);
  settled.resize(calls.size());
  for (size_t i = 0; !checked.wrong && i < calls.size(); ++i)
    Add(CheckCall(calls[i].slot, calls[i].master, filled.ProbeIn(calls[i].slot), settled[i]),
        &checked);
  if (checked.wrong && !checked.wrong->lacked_memory) return checked;
  if (auto stray = FindStrayWrites(values_.live, host_, called)) {
    checked.wrong = CallCheck{};
    checked.wrong->passed = false;
    checked.wrong->hint = std::move(*stray);
    checked.wrong->mistake = Mistake::kStrayWrite;
  }
  return checked;
}

bool HostSide::WroteAstray(std::span<const uint32_t> called) {
  return FindStrayWrites(values_.live, host_, called).has_value();
}

}  // namespace assay
