#include "speed/pair.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/defences.h"
#include "base/median.h"
#include "base/trace.h"
#include "machine/machine.h"
#include "machine/meter.h"
#include "rules/head_start.h"
#include "rules/replays.h"
#include "speed/charges.h"
#include "speed/host_side.h"
#include "speed/pair_hosts.h"
#include "speed/steps.h"

namespace assay {
namespace {

using Kind = HostTrouble::Kind;

constexpr int kRoundsMin = 3;  // the median of fewer does not bear one block that was held up
constexpr int kRoundsMax = 16;
// Single calls of the opponent before the first pair.
constexpr int kCalibrationCalls = 4;

// Runs both halves of a round. nullopt: a call of the candidate was wrong.
HostResult<std::optional<RoundTimes>> RunRound(GateParts& parts, Side& reference, Side& candidate,
                                               PairBlocks* blocks) {
  RoundTimes round;
  const ExchangeTerms terms{
      parts.length.calls, parts.length.SlotsFor(parts.length.calls), {false, blocks}};
  const bool reference_first = parts.Toss();
  for (int half = 0; half < 2; ++half) {
    const bool flip = (half == 0) == reference_first;
    const auto exchanged =
        parts.exchange.Run(flip ? reference : candidate, flip ? candidate : reference, terms);
    if (!exchanged) return std::unexpected(exchanged.error());
    if (!*exchanged) return std::nullopt;
    round.reference_ns[half] = (*exchanged)->call.reference_ns;
    round.candidate_ns[half] = (*exchanged)->call.candidate_ns;
  }
  return round;
}

// Runs the rounds of a pair: as many as fit into its time. nullopt as above.
HostResult<std::optional<std::vector<RoundTimes>>> RunRounds(GateParts& parts, Side& reference,
                                                             Side& candidate, PairBlocks* blocks) {
  std::vector<RoundTimes> rounds;
  const int64_t begin_ns = MonotonicNs();
  const auto another = [&] {
    const auto count = static_cast<double>(rounds.size());
    if (count < kRoundsMin || count >= kRoundsMax) return count < kRoundsMin;
    const auto spent_ns = static_cast<double>(MonotonicNs() - begin_ns);
    const double coming_ns = spent_ns / count + parts.inputs.CostNs(2 * parts.length.slots);
    return spent_ns + coming_ns < parts.terms.pair_s * 1e9;
  };
  while (another()) {
    const auto round = RunRound(parts, reference, candidate, blocks);
    if (!round) return std::unexpected(round.error());
    if (!*round) return std::nullopt;
    rounds.push_back(**round);
  }
  return rounds;
}

HostResult<PairOutcome> RunStartedPair(const Gate2Setup& setup, GateParts& parts, int index,
                                       WatchedTime* watched, std::optional<LiveHost>* host) {
  setup.values.live.Clear();
  auto opponent = StartHosts(setup, index, parts.random, &parts.ledger.spent, host);
  if (!opponent) return std::unexpected(opponent.error());
  if (auto alone = MeasureAlone(setup.sides, &parts.budget); !alone)
    return std::unexpected(alone.error());
  if (!MayReadResults(setup, *opponent->host(), **host)) parts.copies.CopyBoth();
  const BoundThread bound_judge(PlanCores(MeasuringCpus(), setup.terms.threads, index).judge);
  setup.values.pool.BeginProcess();
  const double timeout_s = setup.terms.call_timeout_s;
  HostSide reference(*opponent->host(), false, setup.values, timeout_s);
  HostSide candidate(**host, true, setup.values, timeout_s);
  auto outcome = MeasurePair(parts, reference, candidate,
                             [&] { AwaitEnding(setup.sides, &parts.ledger.spent); });
  if (!outcome || outcome->end != PairEnd::kGood || watched == nullptr) return outcome;
  const int64_t begin_ns = MonotonicNs();
  const WatchTerms terms{setup.values.live, setup.terms.own_kernels, parts.length,
                         outcome->row.candidate_ns};
  if (auto seen = Watch(terms, candidate, parts.random, watched); !seen)
    return std::unexpected(seen.error());
  // A host that hangs here must not be left with fewer pairs for it.
  if (setup.values.live.on_device()) parts.budget.Extend(MonotonicNs() - begin_ns);
  return outcome;
}

}  // namespace

HostResult<void> Calibrate(const Gate2Setup& setup, GateParts& parts) {
  const Span span("calibrate");
  const GateValues& values = setup.values;
  const BlockLimits room = parts.inputs.Limits();
  const uint32_t slots = std::min({2u, room.live_slots, room.pool_slots});
  parts.inputs.Prepare(slots);
  auto opponent = GetOpponent(setup.sides, 0, &parts.ledger.spent);
  if (!opponent) return std::unexpected(opponent.error());
  if (auto alone = MeasureAlone(setup.sides, &parts.budget); !alone)
    return std::unexpected(alone.error());
  const CorePlan cores = PlanCores(MeasuringCpus(), setup.terms.threads, 0);
  if (auto bound = opponent->host()->host.Bind(cores.hosts); !bound)
    return std::unexpected(bound.error());
  const BoundThread bound_judge(cores.judge);
  const Meter meter(&parts.ledger.spent.fill_ns);
  values.pool.BeginProcess();
  HostSide reference(*opponent->host(), false, values, setup.terms.call_timeout_s);
  double reference_ns = 0;
  for (int i = 0; i < kCalibrationCalls; ++i) {
    auto taken = values.pool.Take(ValuesFor::kOpponent, slots);
    if (!taken) return std::unexpected(taken.error());
    values.live.FillInputs(values.oracle, taken->masters);
    const uint32_t order[] = {static_cast<uint32_t>(parts.random() % slots)};
    auto block = parts.exchange.RunBlock(reference, order, {});
    if (!block && block.error().kind == Kind::kVoid) continue;
    if (!block) return std::unexpected(block.error());
    reference_ns = reference_ns == 0 ? block->call_ns : std::min(reference_ns, block->call_ns);
  }
  const double given_ns = setup.terms.candidate_call_ns;
  const CallTimes times{reference_ns, given_ns > 0 ? given_ns : reference_ns};
  parts.call_ns = times.shorter_ns();
  // As replays calls take half as long, or less: a pair whose blocks are too short is lost.
  const bool halved =
      setup.forms.may_replay && MayBeBoundByLaunches({times.reference_ns, times.candidate_ns});
  const double share = halved ? 0.5 : 1;
  const BlockLimits limits = parts.inputs.Limits();
  const uint32_t calls = CallsFor({share * times.reference_ns, share * times.candidate_ns}, limits);
  SetLength(parts, LengthOf(calls, limits));
  return {};
}

HostResult<PairOutcome> MeasurePair(GateParts& parts, Side& reference, Side& candidate,
                                    const std::function<void()>& rest) {
  parts.replays.BeginPair();
  const bool candidate_warms = parts.Toss();
  const auto warmed = WarmUpPair(parts, candidate_warms ? candidate : reference,
                                 candidate_warms ? reference : candidate, rest);
  if (!warmed) return std::unexpected(warmed.error());
  if (*warmed != PairEnd::kGood) return PairOutcome{*warmed, 0, {}};
  PairBlocks blocks;
  auto rounds = RunRounds(parts, reference, candidate, &blocks);
  if (!rounds) return std::unexpected(rounds.error());
  if (!*rounds) return PairOutcome{PairEnd::kWrong, 0, {}};
  parts.ledger.rounds = static_cast<int>((*rounds)->size());
  if (parts.replays.missed()) return PairOutcome{StartOver(parts), 0, {}};
  PairFacts facts;
  if (Stands(Defence::kHeadStart)) {
    std::optional<double> excess_ns;
    if (parts.forms.foreign_code) excess_ns = WakeExcessNs(blocks, parts.ledger.wake_excess_ns);
    Charge(ChargesNs(blocks, excess_ns), parts.length.calls, &blocks.samples, &**rounds);
    const std::string& order = blocks.samples.order;
    facts.opponents_look_ns = std::llround(MedianOfSide('r', order, blocks.look_ns));
    if (parts.forms.foreign_code) facts.wake_free_ns = WakeFreeNs(order, blocks.uncharged_ns);
  }
  facts.row = {Median(ReferenceNs(**rounds)), Median(CandidateNs(**rounds))};
  // A candidate that dawdles until its calls are counted out would get blocks so short that what it
  // hides of them counts.
  if (MakeLonger(parts, facts.row)) return PairOutcome{PairEnd::kTooShort, 0, {}};
  parts.ledger.AddPair(std::move(blocks), **rounds);
  if (parts.length.calls > 1 && Stands(Defence::kSteps)) {
    const auto right = RunSteps(parts, facts, reference, candidate);
    if (!right) return std::unexpected(right.error());
    if (!*right) return PairOutcome{PairEnd::kWrong, 0, {}};
  }
  if (parts.replays.missed()) return PairOutcome{StartOver(parts), 0, {}};
  parts.replays.Stop();
  return PairOutcome{PairEnd::kGood, PairLogRatio(**rounds), facts.row};
}

HostResult<PairOutcome> RunPair(const Gate2Setup& setup, GateParts& parts, int index,
                                WatchedTime* watched) {
  const Span span("pair");
  std::optional<LiveHost> candidate;
  auto outcome = RunStartedPair(setup, parts, index, watched, &candidate);
  if (!outcome && setup.forms.trusts_opponent && outcome.error().of_opponent &&
      outcome.error().wrote_inputs) {
    // Others may write there, too, on a device: a reference that did was named before any pair.
    outcome = HostFailed(Kind::kFoul,
                         "inputs that the baseline leaves alone changed as it ran: the candidate "
                         "wrote to slots of other calls, or left work on the device that did");
    outcome.error().rule = "late-write";
  }
  EndHosts(setup, outcome.has_value(), std::move(candidate));
  return outcome;
}

}  // namespace assay
