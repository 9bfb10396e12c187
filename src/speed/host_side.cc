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

CallCheck HostSide::CheckCall(uint32_t slot, uint32_t master, const Draw* probe,
                              const std::optional<CallCheck>& settled) {
  HintContext context;
  context.draw_kind = DrawKindName(probe == nullptr ? wire::DrawKind::kOrdinary : probe->kind);
  context.ordinary_passed = true;
  CallCheck check = settled
                        ? *settled
                        : assay::CheckCall(values_.oracle, values_.live, host_, slot, master,
                                           probe != nullptr, values_.rule, values_.errors, context);
  if (probe == nullptr || check.passed) return check;
  const RoundingSetup rounding{*values_.options, values_.oracle, values_.rule, values_.errors};
  auto again = CheckForRounding(rounding, *probe, master, values_.live.Written(host_.outputs, slot),
                                context, check);
  // An interrupt ends the gate before what is found here is told.
  return again ? std::move(*again) : check;
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
    calls.push_back({slot, filled.masters[slot], is_probe, !is_probe});
  }
  auto settled = CheckWhereTheyLie(values_.oracle, values_.live, host_.outputs, calls, values_.rule,
                                   values_.errors);
  settled.resize(calls.size());
  for (size_t i = 0; !checked.wrong && i < calls.size(); ++i)
    Add(CheckCall(calls[i].slot, calls[i].master, filled.ProbeIn(calls[i].slot), settled[i]),
        &checked);
  if (checked.wrong && !checked.wrong->lacked_memory) return checked;
  if (auto stray = FindStrayWrites(values_.live, host_, called)) {
    checked.wrong = CallCheck{};
    checked.wrong->passed = false;
    checked.wrong->hint = std::move(*stray);
  }
  return checked;
}

bool HostSide::WroteAstray(std::span<const uint32_t> called) {
  return FindStrayWrites(values_.live, host_, called).has_value();
}

}  // namespace assay
