#include "pipeline/gate2_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "base/clock.h"
#include "judge/warm_up.h"
#include "pipeline/machine.h"

namespace assay {
namespace {

// A block of the faster side lasts about this long: the doorbell (1 us spinning, 50 us on a futex)
// and what a head start between wake-up and go could hide (about 50 us) stay near 1%.
constexpr double kBlockNs = 2.5e6;
// A block of the slower side lasts at most about this long, unless one call does.
constexpr double kSlowBlockNs = 2e8;
// Warm-up of a host ends when it is warm, or after this time.
constexpr int64_t kWarmUpNs = 1'500'000'000;
constexpr int kRoundsMin = 3;  // the median of fewer does not bear one block that was held up
constexpr int kRoundsMax = 16;
constexpr int64_t kClearSpentNs = 1'200'000'000;

// A block whose host waited longer than this share of it for a core was disturbed by other
// processes: the exchange is repeated with new values, for both sides. The wait from thaw to freeze
// includes the wake-up itself.
constexpr double kWaitShareMax = 0.02;
constexpr int64_t kWaitFreeNs = 100'000;
// Exchanges that may be repeated, per measured one; where more are disturbed the machine is too
// busy for a decision.
constexpr int kRepeatsPerExchange = 1;
constexpr double kDisturbedShareMax = 0.1;

// Adds the time it lives to a sum.
class Meter {
 public:
  explicit Meter(int64_t* sum_ns) : sum_ns_(sum_ns), begin_ns_(MonotonicNs()) {}
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  ~Meter() { *sum_ns_ += MonotonicNs() - begin_ns_; }

 private:
  int64_t* sum_ns_;
  int64_t begin_ns_;
};

// Binds this thread as long as it lives; then it may use every core again.
class BoundThread {
 public:
  explicit BoundThread(const std::vector<int>& cpus) { BindThisThread(cpus); }
  BoundThread(const BoundThread&) = delete;
  BoundThread& operator=(const BoundThread&) = delete;
  ~BoundThread() { BindThisThread(UsableCpus()); }
};

// One pair at a time: a candidate's host and its opponent's, and what happens between them.
class PairRunner {
 public:
  PairRunner(const Gate2Setup& setup, Gate2Result* result)
      : setup_(setup), result_(result), random_(std::random_device{}()) {}

  // Chooses the calls of a block from the opponent's time for one call and the candidate's rough
  // one.
  HostResult<void> Calibrate();
  // Runs pair `index`; its log ratio, or nullopt when a timed call was wrong (result->wrong says
  // how).
  HostResult<std::optional<double>> Run(int index);
  uint32_t calls() const { return calls_; }
  double call_ns() const { return call_ns_; }
  int rounds() const { return rounds_; }
  int repeated() const { return repeated_; }
  // Share of the measured exchanges that were disturbed, repeats having run out.
  double disturbed_share() const {
    return exchanges_ == 0 ? 0 : static_cast<double>(disturbed_) / exchanges_;
  }
  const std::vector<double>& reference_ns() const { return reference_ns_; }
  const std::vector<double>& candidate_ns() const { return candidate_ns_; }

 private:
  struct Side {
    LiveHost* host;
    bool is_candidate;
  };
  HostResult<Opponent> GetOpponent(int index);
  // Fills the slots once and runs both sides on them. False: a call of the candidate was wrong.
  HostResult<bool> Exchange(Side first, Side second, uint32_t calls, double* reference_ns,
                            double* candidate_ns, PairSamples* samples);
  HostResult<double> RunSide(Side side, std::span<const uint32_t> order, PairSamples* samples);
  // True when the exchange just run must be repeated because other processes disturbed it.
  bool MustRepeat(bool measured);
  HostResult<void> WarmUp(Side side);
  bool Check(Side side, std::span<const uint32_t> order, std::span<const uint32_t> masters);
  // `calls` of the slots [0, slots), in random order.
  std::vector<uint32_t> RandomOrder(size_t slots, uint32_t calls);

  const Gate2Setup& setup_;
  Gate2Result* result_;
  std::mt19937_64 random_;
  uint32_t calls_ = 1, calls_spare_ = 1, slots_ = 2;
  double call_ns_ = 0;
  int rounds_ = kRoundsMin;
  bool inputs_read_ = true;       // by the side that ran before: they are in its caches
  bool block_disturbed_ = false;  // one of the exchange in hand
  int exchanges_ = 0, repeated_ = 0, disturbed_ = 0;
  std::vector<double> reference_ns_, candidate_ns_;  // per call, one a measured block
};

HostResult<Opponent> PairRunner::GetOpponent(int index) {
  Meter meter(&result_->spent.start_ns);
  return setup_.opponent(index);
}

HostResult<void> PairRunner::Calibrate() {
  setup_.live.SetSlotCount(2);
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
    auto masters = setup_.pool.Take(2);
    if (!masters) return std::unexpected(masters.error());
    setup_.live.FillInputs(setup_.oracle, *masters);
    const uint32_t order[] = {static_cast<uint32_t>(random_() % 2)};
    auto time = RunSide({opponent->host(), false}, order, nullptr);
    if (!time && time.error().kind == HostTrouble::Kind::kVoid) continue;
    if (!time) return std::unexpected(time.error());
    reference_ns = reference_ns == 0 ? *time : std::min(reference_ns, *time);
  }
  const double candidate_ns =
      setup_.candidate_call_ns > 0 ? setup_.candidate_call_ns : reference_ns;
  call_ns_ = std::max(100.0, std::min(reference_ns, candidate_ns));
  const double wanted = std::ceil(kBlockNs / call_ns_);
  const double bearable = std::floor(kSlowBlockNs / std::max(reference_ns, candidate_ns));
  const uint32_t room = std::min(setup_.live.capacity(), setup_.pool.capacity());
  const double limit = std::min<double>(wire::kCallsMax, (room - 1) * 8.0 / 9.0);
  calls_ = static_cast<uint32_t>(std::max(1.0, std::min({wanted, bearable, limit})));
  calls_spare_ = 1 + calls_ / 8;
  slots_ = std::min(room, calls_ + calls_spare_);
  setup_.live.SetSlotCount(slots_);
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
    Meter meter(&result_->spent.fill_ns);
    PoisonOutputs(live.plan(), side.host->outputs.data(), live.plan().slot_count, live.guard());
    if (inputs_read_) live.FlushInputs(setup_.oracle, order);
    inputs_read_ = true;
  }
  auto block = side.host->host.RunBlock(live.plan(), side.host->outputs.data(), order,
                                        setup_.call_timeout_s * static_cast<double>(order.size()));
  if (!block) return std::unexpected(block.error());
  result_->spent.timed_ns += block->time_ns;
  const double wait_limit_ns = kWaitShareMax * static_cast<double>(block->time_ns);
  if (static_cast<double>(block->waited_ns - kWaitFreeNs) > wait_limit_ns) block_disturbed_ = true;
  const bool subtract = setup_.subtract_settle && !side.is_candidate;
  const int64_t settle_ns = subtract ? std::clamp<int64_t>(block->settle_ns, 0, block->time_ns) : 0;
  if (samples != nullptr) {
    samples->order += side.is_candidate ? 'c' : 'r';
    samples->block_ns.push_back(block->time_ns);
    samples->settle_ns.push_back(settle_ns);
  }
  return static_cast<double>(block->time_ns - settle_ns) / static_cast<double>(order.size());
}

bool PairRunner::Check(Side side, std::span<const uint32_t> order,
                       std::span<const uint32_t> masters) {
  Meter meter(&result_->spent.fill_ns);
  HintContext context;
  context.draw_kind = "ordinary";
  for (const uint32_t slot : order) {
    CallCheck check = CheckCall(setup_.oracle, setup_.live, *side.host, slot, masters[slot], false,
                                setup_.rule, setup_.errors, context);
    if (side.is_candidate) {
      ++result_->calls_checked;
      result_->error_ratio = std::max(result_->error_ratio, check.error_ratio);
    }
    if (!check.passed) {
      result_->wrong = std::move(check);
      return false;
    }
  }
  if (const auto stray = FindStrayWrites(setup_.live, *side.host, order)) {
    result_->wrong = CallCheck{};
    result_->wrong->passed = false;
    result_->wrong->hint = *stray;
    return false;
  }
  return true;
}

void DropLastBlocks(PairSamples* samples, size_t count) {
  if (samples == nullptr) return;
  samples->order.resize(samples->order.size() - count);
  samples->block_ns.resize(samples->block_ns.size() - count);
  samples->settle_ns.resize(samples->settle_ns.size() - count);
}

HostResult<bool> PairRunner::Exchange(Side first, Side second, uint32_t calls, double* reference_ns,
                                      double* candidate_ns, PairSamples* samples) {
  std::span<const uint32_t> masters;
  {
    Meter meter(&result_->spent.fill_ns);
    auto taken = setup_.pool.Take(std::min(slots_, calls + calls_spare_));
    if (!taken) {
      result_->opponent_trouble = taken.error();
      return std::unexpected(taken.error());
    }
    masters = *taken;
    setup_.live.FillInputs(setup_.oracle, masters);
    inputs_read_ = false;
  }
  const std::vector<uint32_t> order = RandomOrder(masters.size(), calls);
  block_disturbed_ = false;
  for (const Side side : {first, second}) {
    auto time = RunSide(side, order, samples);
    if (!time && time.error().kind == HostTrouble::Kind::kVoid) {
      // Both sides get new values: these may have been seen. What the first side ran does not
      // count.
      if (side.host == second.host) DropLastBlocks(samples, 1);
      return Exchange(first, second, calls, reference_ns, candidate_ns, samples);
    }
    if (!time) {
      if (!side.is_candidate) result_->opponent_trouble = time.error();
      return std::unexpected(time.error());
    }
    *(side.is_candidate ? candidate_ns : reference_ns) = *time;
  }
  // Both have run by now: what the judge does before a side's block must be the same for both.
  for (const Side side : {first, second}) {
    if (side.is_candidate) {
      if (!Check(side, order, masters)) return false;
    } else if (samples == nullptr && !Check(side, order, masters)) {
      // Warm-up blocks check the opponent too: a reference that disagrees with itself cannot be
      // judged against.
      const std::string hint = result_->wrong->hint;
      result_->wrong.reset();
      result_->opponent_trouble = HostTrouble{};
      result_->opponent_trouble->kind = HostTrouble::Kind::kFailed;
      result_->opponent_trouble->message =
          "the baseline's own outputs are not the expected ones: " + hint;
      return std::unexpected(*result_->opponent_trouble);
    }
  }
  if (!MustRepeat(samples != nullptr)) return true;
  DropLastBlocks(samples, 2);
  return Exchange(first, second, calls, reference_ns, candidate_ns, samples);
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
  const uint32_t order[] = {0};
  const int64_t begin_ns = MonotonicNs();
  WarmUpWatch watch;
  while (!watch.Warm() && MonotonicNs() - begin_ns < kWarmUpNs) {
    const int64_t faults_before = side.host->host.PageFaults();
    auto time = RunSide(side, order, nullptr);
    if (!time && time.error().kind == HostTrouble::Kind::kVoid) continue;
    if (!time) {
      if (!side.is_candidate) result_->opponent_trouble = time.error();
      return std::unexpected(time.error());
    }
    watch.Add(*time, side.host->host.PageFaults() - faults_before);
  }
  return {};
}

HostResult<std::optional<double>> PairRunner::Run(int index) {
  auto opponent = GetOpponent(index);
  if (!opponent) {
    result_->opponent_trouble = opponent.error();
    return std::unexpected(opponent.error());
  }
  auto candidate = [&] {
    Meter meter(&result_->spent.start_ns);
    return setup_.candidate(index);
  }();
  if (!candidate) return std::unexpected(candidate.error());
  // Both hosts run on this pair's cores, whichever they were started on: a warm one that shares the
  // judge's core would lose to any candidate.
  const CorePlan cores = PlanCores(UsableCpus(), setup_.threads, index);
  for (LiveHost* host : {opponent->host(), &*candidate})
    if (auto bound = host->host.Bind(cores.hosts); !bound) return std::unexpected(bound.error());
  const BoundThread bound_judge(cores.judge);
  setup_.pool.BeginProcess();
  const Side reference{opponent->host(), false}, tried{&*candidate, true};
  double ignored_ns;
  // One call each, which loads what is loaded lazily; then as many as it takes; then a whole block.
  for (const bool whole_block : {false, true}) {
    auto right =
        Exchange(reference, tried, whole_block ? calls_ : 1, &ignored_ns, &ignored_ns, nullptr);
    if (!right) return std::unexpected(right.error());
    if (!*right) return std::nullopt;
    if (whole_block) break;
    for (const Side side : {reference, tried})
      if (auto warm = WarmUp(side); !warm) return std::unexpected(warm.error());
  }
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
  result_->samples.push_back(std::move(samples));
  return PairLogRatio(rounds);
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

int PairsUntilDecision(int pair_index) {
  if (pair_index < kPairsMin) return kPairsMin - pair_index;
  for (const Look& look : Looks())
    if (look.pairs > pair_index) return look.pairs - pair_index;
  return 1;
}

HostResult<Gate2Result> RunGate2(const Gate2Setup& setup) {
  Gate2Result result;
  PairRunner runner(setup, &result);
  if (auto calibrated = runner.Calibrate(); !calibrated) {
    result.opponent_trouble = calibrated.error();
    return result;
  }
  const SpeedRule rule = RuleForDuration(runner.call_ns(), setup.threshold, setup.noise);
  const Deadline budget = Deadline::AfterSeconds(setup.budget_s);
  std::vector<double> log_ratios;
  Decision decision = Decision::kContinue;
  while (decision == Decision::kContinue) {
    const int index = static_cast<int>(log_ratios.size());
    auto ratio = runner.Run(index);
    if (!ratio) {
      if (result.opponent_trouble) return result;
      return std::unexpected(ratio.error());
    }
    if (!*ratio) return result;
    log_ratios.push_back(**ratio);
    const bool enough_spent = static_cast<int>(log_ratios.size()) >= setup.clear_pairs ||
                              result.spent.fill_ns + result.spent.timed_ns > kClearSpentNs;
    const bool last = static_cast<int>(log_ratios.size()) >= rule.pairs_max || budget.Expired();
    decision = Decide(log_ratios, rule, enough_spent, last);
    setup.progress(static_cast<int>(log_ratios.size()), Estimate(log_ratios, rule));
  }
  const SpeedEstimate estimate = Estimate(log_ratios, rule);
  BaselineResult& speed = result.result;
  speed.time_ns = Median(runner.reference_ns());
  speed.candidate_time_ns = Median(runner.candidate_ns());
  speed.speedup = estimate.speedup;
  speed.ci_low = estimate.low;
  speed.ci_high = estimate.high;
  speed.confidence = estimate.confidence;
  speed.smallest_visible = estimate.smallest_visible;
  speed.certified_speedup = CertifiedSpeedup(log_ratios, rule);
  speed.delta = rule.delta;
  speed.clear_margin = rule.clear_margin;
  speed.disturbed_share = runner.disturbed_share();
  if (runner.disturbed_share() > kDisturbedShareMax) {
    decision = Decision::kUnsettled;
    speed.certified_speedup = 0;
    speed.note = fmt::format(
        "other processes disturbed {:.0f}% of the measurements: judge again on a quieter machine",
        100 * runner.disturbed_share());
  } else if (const int repeated = runner.repeated(); repeated > 0) {
    speed.note = fmt::format("{} because other processes had disturbed {}",
                             repeated == 1 ? std::string("1 measurement was repeated")
                                           : fmt::format("{} measurements were repeated", repeated),
                             repeated == 1 ? "it" : "them");
  }
  speed.decision = DecisionName(decision);
  speed.pairs = static_cast<int>(log_ratios.size());
  speed.rounds = runner.rounds();
  speed.calls_per_block = static_cast<int>(runner.calls());
  return result;
}

}  // namespace assay
