#include "speed/pair_runner.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/clock.h"
#include "base/defences.h"
#include "base/median.h"
#include "base/trace.h"
#include "correctness/device_checks.h"
#include "correctness/rounding.h"
#include "machine/machine.h"
#include "machine/meter.h"
#include "rules/replays.h"
#include "rules/warm_up.h"
#include "values/draw_kinds.h"

namespace assay {
namespace {

// Warm-up of a host ends when it is warm, or after this time.
constexpr int64_t kWarmUpNs = 1'500'000'000;
constexpr int kRoundsMin = 3;  // the median of fewer does not bear one block that was held up
constexpr int kRoundsMax = 16;
// Blocks before those that count, each of which may show that the next ones are to be longer.
constexpr int kBlocksBeforeMax = 4;

// A block whose host waited longer than this share of it for a core was disturbed by other
// processes: the exchange is repeated with new values, for both sides. The wait from thaw to freeze
// includes the wake-up itself.
constexpr double kWaitShareMax = 0.02;
constexpr int64_t kWaitFreeNs = 100'000;
// Exchanges that may be repeated, per measured one; where more are disturbed the machine is too
// busy for a decision.
constexpr int kRepeatsPerExchange = 1;

}  // namespace

HostResult<Opponent> PairRunner::GetOpponent(int index) {
  Meter meter(&result_->spent.start_ns);
  return setup_.opponent(index);
}

HostResult<void> PairRunner::BeginHosts(int index) {
  if (!setup_.begin_hosts) return {};
  Meter meter(&result_->spent.start_ns);
  auto begun = setup_.begin_hosts(index);
  if (!begun) return OpponentsTrouble(begun.error());
  return begun;
}

HostResult<void> PairRunner::Calibrate() {
  const Span span("calibrate");
  PrepareSlots(2);
  auto opponent = GetOpponent(0);
  if (!opponent) return std::unexpected(opponent.error());
  const CorePlan cores = PlanCores(UsableCpus(), setup_.threads, 0);
  if (auto bound = opponent->host()->host.Bind(cores.hosts); !bound)
    return std::unexpected(bound.error());
  const BoundThread bound_judge(cores.judge);
  Meter meter(&result_->spent.fill_ns);
  setup_.pool.BeginProcess();
  double reference_ns = 0;
  for (int i = 0; i < 4; ++i) {
    auto taken = setup_.pool.Take(2);
    if (!taken) return std::unexpected(taken.error());
    setup_.live.FillInputs(setup_.oracle, taken->masters);
    const uint32_t order[] = {static_cast<uint32_t>(random_() % 2)};
    auto time = RunSide({opponent->host(), false}, order, nullptr);
    if (!time && time.error().kind == HostTrouble::Kind::kVoid) continue;
    if (!time) return std::unexpected(time.error());
    reference_ns = reference_ns == 0 ? *time : std::min(reference_ns, *time);
  }
  const double candidate_ns =
      setup_.candidate_call_ns > 0 ? setup_.candidate_call_ns : reference_ns;
  call_ns_ = std::max(100.0, std::min(reference_ns, candidate_ns));
  // As replays calls take half as long, or less: a pair whose blocks are too short is lost.
  const bool halved = setup_.may_replay && MayBeBoundByLaunches({reference_ns, candidate_ns});
  const double share = halved ? 0.5 : 1;
  SetCalls(CallsFor(share * reference_ns, share * candidate_ns));
  return {};
}

std::vector<uint32_t> PairRunner::RandomOrder(size_t slots, uint32_t calls) {
  std::vector<uint32_t> order(slots);
  std::iota(order.begin(), order.end(), 0u);
  std::shuffle(order.begin(), order.end(), random_);
  order.resize(calls);
  return order;
}

HostResult<double> PairRunner::RunSide(Side side, std::span<const uint32_t> order,
                                       PairSamples* samples) {
  const LiveSlots& live = setup_.live;
  {
    const Span span("poison and flush");
    Meter meter(&result_->spent.fill_ns);
    live.Poison(side.host->outputs);
    live.FlushInputs(setup_.oracle, order);
  }
  if (live.TakeBusy()) block_disturbed_ = true;
  return RunFilled(side, order, samples);
}

namespace {

// What held the clock down is kept of dropped blocks, too: it was so in this pair.
void AddClock(const ClockState& clock, PairSamples* samples) {
  samples->sm_mhz.push_back(clock.sm_mhz);
  for (const std::string& limit : ClockLimitNames(clock.limits))
    if (std::find(samples->clock_limits.begin(), samples->clock_limits.end(), limit) ==
        samples->clock_limits.end())
      samples->clock_limits.push_back(limit);
}

}  // namespace

HostResult<double> PairRunner::RunFilled(Side side, std::span<const uint32_t> order,
                                         PairSamples* samples) {
  const LiveSlots& live = setup_.live;
  const bool subtract = setup_.subtract_settle && !side.is_candidate;
  side.host->host.SetResults(ResultsOf(side));
  ASSAY_CHECK(!replaying_ || setup_.may_replay);
  side.host->host.Replay(replaying_);
  auto block = live.RunBlock(side.host->host, side.host->outputs, order,
                             setup_.call_timeout_s + kBlockGraceS);
  if (!block) return std::unexpected(block.error());
  if (block->must_copy) {
    CopyFromNowOn(side);
    return HostFailed(HostTrouble::Kind::kVoid, "these results must be copied");
  }
  if (replaying_ && !side.host->host.Replayed()) replay_missed_ = true;
  result_->spent.timed_ns += block->time_ns;
  const double wait_limit_ns = kWaitShareMax * static_cast<double>(block->time_ns);
  if (static_cast<double>(block->waited_ns - kWaitFreeNs) > wait_limit_ns) block_disturbed_ = true;
  const int64_t settle_ns = subtract ? std::clamp<int64_t>(block->settle_ns, 0, block->time_ns) : 0;
  last_look_ns_ = block->look_ns;
  if (samples != nullptr) {
    samples->order += side.is_candidate ? 'c' : 'r';
    samples->block_ns.push_back(block->time_ns);
    samples->settle_ns.push_back(settle_ns);
    (side.is_candidate ? candidates_copies_ns_ : opponents_copies_ns_)
        .push_back(static_cast<double>(std::clamp<int64_t>(block->settle_ns, 0, block->time_ns)) /
                   static_cast<double>(order.size()));
    // Dropped blocks leave theirs behind.
    uncharged_ns_.resize(samples->block_ns.size());
    look_ns_.resize(samples->block_ns.size());
    uncharged_ns_.back() = block->uncharged_ns;
    look_ns_.back() = block->look_ns;
    if (const auto clock = live.Clock()) AddClock(*clock, samples);
  }
  return static_cast<double>(block->time_ns - settle_ns) / static_cast<double>(order.size());
}

bool PairRunner::CheckOne(Side side, uint32_t slot, uint32_t master, const Draw* probe,
                          const std::optional<CallCheck>& settled) {
  if (!Stands(Defence::kTimedChecks)) return true;
  HintContext context;
  context.draw_kind = DrawKindName(probe == nullptr ? wire::DrawKind::kOrdinary : probe->kind);
  context.ordinary_passed = true;
  CallCheck check = settled ? *settled
                            : CheckCall(setup_.oracle, setup_.live, *side.host, slot, master,
                                        probe != nullptr, setup_.rule, setup_.errors, context);
  if (probe != nullptr && !check.passed) {
    const RoundingSetup rounding{*setup_.options, setup_.oracle, setup_.rule, setup_.errors};
    auto again = CheckForRounding(rounding, *probe, master,
                                  setup_.live.Written(side.host->outputs, slot), context, check);
    // An interrupt ends the call before what is found here is told.
    if (again) check = std::move(*again);
  }
  if (side.is_candidate) {
    ++result_->calls_checked;
    result_->error_ratio = std::max(result_->error_ratio, check.error_ratio);
  }
  if (!check.passed) result_->wrong = std::move(check);
  return !result_->wrong;
}

bool PairRunner::Check(Side side, std::span<const uint32_t> order, const FilledSlots& filled) {
  const Span span("check a block");
  if (!Stands(Defence::kTimedChecks)) return true;
  Meter meter(&result_->spent.fill_ns);
  error_ratio_before_ = result_->error_ratio;
  const auto is_probe = [&](uint32_t slot) {
    return filled.probe != nullptr && filled.probe_slot == slot;
  };
  std::vector<CheckedCall> calls;
  for (const uint32_t slot : order)
    calls.push_back({slot, filled.masters[slot], is_probe(slot), !is_probe(slot)});
  auto settled = CheckWhereTheyLie(setup_.oracle, setup_.live, side.host->outputs, calls,
                                   setup_.rule, setup_.errors);
  settled.resize(calls.size());
  bool right = true;
  for (size_t i = 0; right && i < calls.size(); ++i) {
    const auto& [slot, master, probed, ordinary] = calls[i];
    right = CheckOne(side, slot, master, probed ? filled.probe : nullptr, settled[i]);
  }
  if (!right && !result_->wrong->lacked_memory) return false;
  if (const auto stray = FindStrayWrites(setup_.live, *side.host, order)) {
    result_->wrong = CallCheck{};
    result_->wrong->passed = false;
    result_->wrong->hint = *stray;
    return false;
  }
  return right;
}

void DropLastBlocks(PairSamples* samples, size_t count) {
  if (samples == nullptr) return;
  samples->order.resize(samples->order.size() - count);
  samples->block_ns.resize(samples->block_ns.size() - count);
  samples->settle_ns.resize(samples->settle_ns.size() - count);
  samples->sm_mhz.resize(std::min(samples->sm_mhz.size(), samples->order.size()));
}

HostResult<PairRunner::FilledSlots> PairRunner::FillSlots(uint32_t calls) {
  const Span span("fill slots");
  Meter meter(&result_->spent.fill_ns);
  auto taken = setup_.pool.Take(std::min(slots_, calls + calls_spare_));
  if (!taken) return std::unexpected(taken.error());
  FilledSlots filled;
  filled.masters.assign(taken->masters.begin(), taken->masters.end());
  // One call of a block, where there are several, has values as unusual as in gate 1: who is right
  // there alone is found out. A block of one call is so now and then.
  const bool with_probe = calls > 1 || random_() % 4 == 0;
  if (taken->probe != nullptr && with_probe && Stands(Defence::kTimedDraws)) {
    filled.probe = taken->probe;
    setup_.pool.MarkShown(taken->probe);
    filled.probe_slot = static_cast<uint32_t>(random_() % filled.masters.size());
    filled.masters[filled.probe_slot] = filled.probe->master;
  }
  setup_.live.FillInputs(setup_.oracle, filled.masters);
  return filled;
}

HostResult<bool> PairRunner::Exchange(Side first, Side second, uint32_t calls, double* reference_ns,
                                      double* candidate_ns, PairSamples* samples) {
  auto filled = FillSlots(calls);
  if (!filled) return OpponentsTrouble(filled.error());
  const std::vector<uint32_t> order = RandomOrder(filled->masters.size(), calls);
  block_disturbed_ = false;
  looks_at_opponent_ = samples == nullptr && !only_times_;
  for (const Side side : {first, second}) {
    if (side.host == second.host && first.is_candidate && !setup_.live.InputsHold(order)) {
      HostTrouble foul;
      foul.kind = HostTrouble::Kind::kFoul;
      foul.rule = "late-write";
      foul.message = "inputs that the other side was to read changed after its block";
      return std::unexpected(std::move(foul));
    }
    auto time = RunSide(side, order, samples);
    if (!time && time.error().kind == HostTrouble::Kind::kVoid) {
      // Both sides get new values: these may have been seen. What the first side ran does not
      // count.
      if (side.host == second.host) DropLastBlocks(samples, 1);
      return Exchange(first, second, calls, reference_ns, candidate_ns, samples);
    }
    if (!time) return TroubleOf(side, time.error());
    *(side.is_candidate ? candidate_ns : reference_ns) = *time;
  }
  looks_at_opponent_ = false;
  // Both have run by now: what the judge does before a side's block must be the same for both.
  for (const Side side : {first, second}) {
    const bool looks = side.is_candidate || (samples == nullptr && !only_times_);
    bool right = !looks || Check(side, order, *filled);
    // Who does that does it in the first blocks already, which do not count.
    if (!right && samples == nullptr && UsesResultsAgain(side, order, *filled)) {
      auto in_slots = IsRightInSlots(side, order, *filled);
      if (!in_slots) return std::unexpected(in_slots.error());
      right = *in_slots;
      if (right) return Exchange(first, second, calls, reference_ns, candidate_ns, samples);
    }
    if (side.is_candidate) {
      if (!right) return false;
    } else if (!right) {
      // Warm-up blocks check the opponent too: a reference that disagrees with itself cannot be
      // judged against.
      const std::string hint = result_->wrong->hint;
      result_->wrong.reset();
      HostTrouble trouble;
      trouble.kind = HostTrouble::Kind::kFailed;
      trouble.message = "the baseline's own outputs are not the expected ones: " + hint;
      return OpponentsTrouble(std::move(trouble));
    } else {
      // Outputs that the judge has read make the next block faster: by 0.87% at 32 us a call
      // (bench/results/cpu-2core/aa_bias_inputs_flushed.jsonl).
      Meter meter(&result_->spent.fill_ns);
      setup_.live.Read(side.host->outputs);
    }
  }
  if (!MustRepeat(samples != nullptr)) return true;
  DropLastBlocks(samples, 2);
  return Exchange(first, second, calls, reference_ns, candidate_ns, samples);
}

double PairRunner::disturbed_share() const {
  const auto share = [](int part, int of) { return of == 0 ? 0 : static_cast<double>(part) / of; };
  return std::max(share(disturbed_, exchanges_), share(pairs_without_step_, pairs_stepped_));
}

bool PairRunner::MustRepeat(bool measured) {
  if (!measured) return false;
  ++exchanges_;
  if (!block_disturbed_) return false;
  if (repeated_ < 8 + kRepeatsPerExchange * (exchanges_ - repeated_)) {
    ++repeated_;
    return true;
  }
  ++disturbed_;
  return false;
}

// Single calls on values that the host has had already: neither measured nor checked.
HostResult<void> PairRunner::WarmUp(Side side) {
  const Span span("warm up");
  const uint32_t order[] = {0};
  const int64_t begin_ns = MonotonicNs();
  WarmUpWatch watch;
  while (!watch.Warm() && MonotonicNs() - begin_ns < kWarmUpNs) {
    const int64_t faults_before = side.host->host.PageFaults();
    auto time = RunSide(side, order, nullptr);
    if (!time && time.error().kind == HostTrouble::Kind::kVoid) continue;
    if (!time) return TroubleOf(side, time.error());
    watch.Add(*time, side.host->host.PageFaults() - faults_before);
  }
  return {};
}

// One call each, which loads what is loaded lazily; then as many as it takes; then whole blocks,
// until they are long enough.
HostResult<bool> PairRunner::WarmUpPair(Side early, Side late) {
  RoundTimes times;
  const auto run = [&](uint32_t calls) {
    return Exchange(early, late, calls, &times.reference_ns[0], &times.candidate_ns[0], nullptr);
  };
  if (auto right = run(1); !right || !*right) return right;
  for (const Side side : {early, late})
    if (auto warm = WarmUp(side); !warm) return std::unexpected(warm.error());
  bool longer = true;
  for (int blocks = 1; longer; ++blocks) {
    if (auto right = run(calls_); !right || !*right) return right;
    if (blocks == kBlocksBeforeMax) break;
    auto lengthened = Lengthen(times, early, late);
    if (!lengthened) return lengthened;
    longer = *lengthened;
  }
  AwaitEnding();
  return SettleReplays(early, late);
}

HostResult<std::optional<double>> PairRunner::Run(int index) {
  const Span span("pair");
  std::optional<HostResult<LiveHost>> candidate;
  auto ratio = RunPair(index, &candidate);
  if (!ratio && setup_.trusts_opponent && ratio.error().of_opponent && ratio.error().wrote_inputs) {
    // Others may write there, too, on a device: a reference that did was named before any pair.
    ratio = HostFailed(HostTrouble::Kind::kFoul,
                       "inputs that the baseline leaves alone changed as it ran: the candidate "
                       "wrote to slots of other calls, or left work on the device that did");
    ratio.error().rule = "late-write";
  }
  EndPair(ratio.has_value(), &candidate);
  return ratio;
}

void PairRunner::EndPair(bool ran, std::optional<HostResult<LiveHost>>* candidate) {
  if (!ran) setup_.live.NoteTrouble();
  if (setup_.ending != nullptr && *candidate && **candidate)
    setup_.ending->Add(std::move(***candidate));
}

HostResult<Opponent> PairRunner::StartHosts(int index,
                                            std::optional<HostResult<LiveHost>>* candidate) {
  if (setup_.live.MemoryIsShort()) AwaitEnding();
  if (auto begun = BeginHosts(index); !begun) return std::unexpected(begun.error());
  // Which side starts first is chance: memory, caches and cores are not the same for who comes
  // second.
  const bool candidate_starts = random_() % 2 == 0;
  const auto start_candidate = [&] {
    Meter meter(&result_->spent.start_ns);
    candidate->emplace(setup_.candidate(index));
  };
  if (candidate_starts) start_candidate();
  auto opponent = GetOpponent(index);
  if (!opponent) return OpponentsTrouble(opponent.error());
  if (!candidate_starts) start_candidate();
  if (!**candidate) return std::unexpected((*candidate)->error());
  // Both hosts run on this pair's cores, whichever they were started on: a warm one that shares the
  // judge's core would lose to any candidate.
  const CorePlan cores = PlanCores(UsableCpus(), setup_.threads, index);
  for (LiveHost* host : {opponent->host(), &***candidate})
    if (auto bound = host->host.Bind(cores.hosts); !bound) return std::unexpected(bound.error());
  // On a device they lie in memory of the judge's.
  const bool reads = !setup_.live.on_device();
  if (reads && ((setup_.candidate_leaves && !(**candidate)->may_be_read) ||
                (setup_.opponent_leaves && !opponent->host()->may_be_read)))
    both_copy_ = true;
  return opponent;
}

HostResult<std::optional<double>> PairRunner::RunPair(
    int index, std::optional<HostResult<LiveHost>>* tried_host) {
  std::optional<HostResult<LiveHost>>& candidate = *tried_host;
  grew_ = starts_over_ = replaying_ = replay_missed_ = false;
  setup_.live.Clear();
  auto opponent = StartHosts(index, &candidate);
  if (!opponent) return std::unexpected(opponent.error());
  const BoundThread bound_judge(PlanCores(UsableCpus(), setup_.threads, index).judge);
  setup_.pool.BeginProcess();
  const Side reference{opponent->host(), false}, tried{&**candidate, true};
  const bool candidate_warms = random_() % 2 == 0;
  const Side early = candidate_warms ? tried : reference,
             late = candidate_warms ? reference : tried;
  if (auto right = WarmUpPair(early, late); !right || !*right) {
    if (!right) return std::unexpected(right.error());
    return std::nullopt;
  }
  if (starts_over_) return std::nullopt;
  PairSamples samples;
  std::vector<RoundTimes> rounds;
  const int64_t begin_ns = MonotonicNs();
  const auto another = [&] {
    const auto count = static_cast<double>(rounds.size());
    if (count < kRoundsMin || count >= kRoundsMax) return count < kRoundsMin;
    const auto spent_ns = static_cast<double>(MonotonicNs() - begin_ns);
    return spent_ns + spent_ns / count + setup_.pool.CostNs(2 * slots_) < setup_.pair_s * 1e9;
  };
  while (another()) {
    RoundTimes round;
    const bool reference_first = random_() % 2 == 0;
    for (int half = 0; half < 2; ++half) {
      const bool flip = (half == 0) == reference_first;
      auto right = Exchange(flip ? reference : tried, flip ? tried : reference, calls_,
                            &round.reference_ns[half], &round.candidate_ns[half], &samples);
      if (!right) return std::unexpected(right.error());
      if (!*right) return std::nullopt;
      reference_ns_.push_back(round.reference_ns[half]);
      candidate_ns_.push_back(round.candidate_ns[half]);
    }
    rounds.push_back(round);
  }
  rounds_ = static_cast<int>(rounds.size());
  if (replay_missed_) return StartOver();
  if (Stands(Defence::kHeadStart)) ChargeHeadStart(&samples, &rounds);
  if ((grew_ = Grow())) return std::nullopt;
  result_->samples.push_back(std::move(samples));
  if (calls_ > 1 && Stands(Defence::kSteps)) {
    auto right = RunSteps(reference, tried);
    if (!right) return std::unexpected(right.error());
    if (!*right) return std::nullopt;
  }
  if (replay_missed_) return StartOver();
  replaying_ = false;
  if (index == watched_pair_ && Stands(Defence::kLibraries))
    if (auto watched = Watch(tried); !watched) return std::unexpected(watched.error());
  return PairLogRatio(rounds);
}

void PairRunner::AwaitEnding() {
  if (setup_.ending == nullptr) return;
  const Span span("await hosts that end");
  Meter meter(&result_->spent.start_ns);
  setup_.ending->Await();
}

}  // namespace assay
