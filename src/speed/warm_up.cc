#include "speed/warm_up.h"

#include "base/defences.h"
#include "base/trace.h"
#include "machine/meter.h"
#include "rules/replays.h"
#include "rules/warm_up.h"

namespace assay {
namespace {

using Kind = HostTrouble::Kind;

// Warm-up of a host ends when it is warm, or after this time.
constexpr int64_t kWarmUpNs = 1'500'000'000;
// Blocks before those that count, each of which may show that the next ones are to be longer.
constexpr int kBlocksBeforeMax = 4;
// Exchanges of each kind that are timed for replays, until one is undisturbed.
constexpr int kTries = 3;

// Single calls on values that the host has had already: neither measured nor checked.
HostResult<void> WarmUp(GateParts& parts, Side& side) {
  const Span span("warm up");
  const uint32_t order[] = {0};
  const int64_t begin_ns = MonotonicNs();
  WarmUpWatch watch;
  while (!watch.Warm() && MonotonicNs() - begin_ns < kWarmUpNs) {
    const int64_t faults_before = side.PageFaults();
    auto block = parts.exchange.RunBlock(side, order, {});
    if (!block && block.error().kind == Kind::kVoid) continue;
    if (!block) return TroubleOf(side, block.error());
    watch.Add(block->call_ns, side.PageFaults() - faults_before);
  }
  return {};
}

ExchangeTerms Unmeasured(const BlockLength& length, uint32_t calls, bool looked_at) {
  return {calls, length.SlotsFor(calls), {looked_at, nullptr}};
}

// Calls in a row take less than the single ones that blocks were laid out by. Returns true if the
// next blocks, in the same hosts, are longer.
HostResult<bool> Lengthen(GateParts& parts, const CallTimes& times, Side& early, Side& late) {
  if (!MakeLonger(parts, times)) return false;
  const Span span("lengthen blocks");
  const Meter meter(&parts.ledger.spent.start_ns);
  for (Side* side : {&early, &late})
    if (auto entered = side->EnterAgain(); !entered) return TroubleOf(*side, entered.error());
  return true;
}

// The times of calls in blocks as those that count, of an exchange that nobody disturbed if a few
// tries have one. nullopt: a call of the candidate was wrong.
HostResult<std::optional<CallTimes>> TimeBlocks(GateParts& parts, Side& early, Side& late) {
  const ExchangeTerms terms = Unmeasured(parts.length, parts.length.calls, false);
  std::optional<CallTimes> times;
  for (int i = 0; i < kTries; ++i) {
    const auto exchanged = parts.exchange.Run(early, late, terms);
    if (!exchanged) return std::unexpected(exchanged.error());
    if (!*exchanged) return std::nullopt;
    times = (*exchanged)->call;
    if (!(*exchanged)->disturbed) break;
  }
  return times;
}

// The blocks of replays of one pair. The first looks at the opponent's outputs: a reference whose
// calls give others when they are captured is run as it is.
HostResult<std::optional<CallTimes>> TimeReplays(GateParts& parts, Side& early, Side& late,
                                                 bool untried) {
  parts.replays.Start();
  const auto looked =
      parts.exchange.Run(early, late, Unmeasured(parts.length, parts.length.calls, true));
  if (!looked) return std::unexpected(looked.error());
  if (!*looked) return std::nullopt;
  if (!untried) return (*looked)->call;
  return TimeBlocks(parts, early, late);
}

}  // namespace

void SetLength(GateParts& parts, const BlockLength& length) {
  parts.length = length;
  parts.inputs.Prepare(length.slots);
}

bool MakeLonger(GateParts& parts, const CallTimes& times) {
  if (!Stands(Defence::kLongBlocks) || parts.budget.Expired()) return false;
  const auto longer = LongerThan(parts.length, times, parts.inputs.Limits());
  if (!longer) return false;
  SetLength(parts, *longer);
  parts.call_ns = times.shorter_ns();
  return true;
}

PairEnd StartOver(GateParts& parts) {
  parts.replays.GiveUp();
  parts.ledger.ForgetPairs();
  return PairEnd::kStartsOver;
}

HostResult<PairEnd> SettleReplays(GateParts& parts, Side& early, Side& late) {
  ReplayPolicy& replays = parts.replays;
  if (!replays.MayReplay()) return PairEnd::kGood;
  const Span span("replay");
  const bool untried = replays.BeginTry();
  const auto launched = TimeBlocks(parts, early, late);
  if (!launched) return std::unexpected(launched.error());
  if (!*launched) return PairEnd::kWrong;
  const LaunchedTimes one_by_one{(*launched)->reference_ns, (*launched)->candidate_ns};
  if (untried && !LaunchesMayShow(one_by_one)) return PairEnd::kGood;
  auto replayed = TimeReplays(parts, early, late, untried);
  if (replayed && !*replayed) return PairEnd::kWrong;
  const bool differs =
      !replayed && replayed.error().of_opponent && replayed.error().kind == Kind::kFailed;
  if (!replayed && !(differs && untried)) {
    if (replayed.error().of_opponent)
      replayed.error().message +=
          " (while its calls were captured as a CUDA graph, which --no-replay leaves out)";
    return std::unexpected(std::move(replayed.error()));
  }
  if (!untried && replays.missed()) return StartOver(parts);
  if (untried && (differs || replays.missed())) {
    replays.GiveUp();
    return PairEnd::kGood;
  }
  if (untried && !LaunchingCounts(one_by_one) &&
      !LaunchesShow(one_by_one, {(*replayed)->reference_ns, (*replayed)->candidate_ns})) {
    replays.Decline();
    return PairEnd::kGood;
  }
  replays.Settle();
  parts.ledger.launched.push_back(**launched);
  if (untried) parts.call_ns = (*replayed)->shorter_ns();
  return PairEnd::kGood;
}

// One call each, which loads what is loaded lazily; then as many as it takes; then whole blocks,
// until they are long enough.
HostResult<PairEnd> WarmUpPair(GateParts& parts, Side& early, Side& late,
                               const std::function<void()>& rest) {
  const auto run = [&](uint32_t calls) {
    return parts.exchange.Run(early, late, Unmeasured(parts.length, calls, true));
  };
  const auto single = run(1);
  if (!single) return std::unexpected(single.error());
  if (!*single) return PairEnd::kWrong;
  for (Side* side : {&early, &late})
    if (auto warm = WarmUp(parts, *side); !warm) return std::unexpected(warm.error());
  for (int blocks = 1;; ++blocks) {
    const auto block = run(parts.length.calls);
    if (!block) return std::unexpected(block.error());
    if (!*block) return PairEnd::kWrong;
    if (blocks == kBlocksBeforeMax) break;
    const auto longer = Lengthen(parts, (*block)->call, early, late);
    if (!longer) return std::unexpected(longer.error());
    if (!*longer) break;
  }
  rest();
  return SettleReplays(parts, early, late);
}

}  // namespace assay
