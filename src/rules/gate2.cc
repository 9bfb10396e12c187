#include "rules/gate2.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "base/check.h"
#include "base/median.h"

namespace assay {
namespace {

constexpr std::array<Look, 4> kLooks{{{9, 9}, {14, 13}, {24, 21}, {32, 25}}};
constexpr int kClearPairsMin = 3;

// Before the first look pairs decide where they agree: the one nearest to the threshold lies so
// many times as far beyond it as the pairs are apart; by the number of pairs. Distances count from
// the noise floor on. Normal pairs at that floor meet these with chances of 0.010%, 0.007%, 0.005%,
// 0.004%, 0.003% and 0.003% (AgreementBound).
constexpr std::array<double, 9> kAgreement{0, 0, 0, 21, 5, 2.4, 1.3, 0.9, 0.6};
// Processes may have few layouts, so that pairs agree by chance: they must lie beyond what layouts
// move, too. Of recorded A/A verdicts none is decided so (bench/aa_replay).
constexpr double kAgreementDeltas = 5;

// Pairs that are no success, by the number of pairs, from which on a win is out of reach. From 20
// on 8 of them make every look ahead fail; before, they are the fewest that lose less than 1% of
// power at any chance of a success (gate2_test computes the loss; docs/measurement.md).
constexpr std::array<int, 33> kFutileFailures{99, 99, 99, 3, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7,
                                              7,  7,  7,  8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8};
constexpr double kCoverageMin = 0.99;

// A tie is called where the interval lies within this distance of the threshold: what two deltas,
// or 1%, span.
constexpr double kTieDeltas = 2;
constexpr double kTieMin = 0.01;
// Where no side can win any more, an interval within this many tie widths still is a tie; a wider
// one says nothing.
constexpr double kUsefulTieWidths = 3;

// Noise floor and clear margin by the duration of one call. One row a measured duration, in growing
// order; durations between rows are interpolated in log(duration), those outside take the nearest
// row. They bound what identical programs showed on a shared virtual machine of two cores
// (bench/results/cpu-2core/aa_*.jsonl): delta 99% of the verdicts, the margin 99.9% of the pairs.
constexpr std::array<NoisePoint, 4> kNoise{{
    {2e3, 0.05, 0.70},
    {20e3, 0.015, 0.50},
    {100e3, 0.01, 0.50},
    {1e6, 0.01, 0.50},
}};

// The same of two sides in the device form (bench/results/h200/aa_{4,24,213}us.jsonl, one H200): no
// verdict was further from 1 than delta; the furthest pair was at 0.254 at 4 us, 0.026 at 24 us and
// 0.011 at 213 us. Up to 12 us launches bound calls.
constexpr std::array<NoisePoint, 4> kDeviceNoise{{
    {4e3, 0.04, 0.50},
    {12e3, 0.02, 0.50},
    {24e3, 0.01, 0.20},
    {200e3, 0.01, 0.20},
}};

// Of sides whose blocks are replays of graphs, a reference's among them. 28 A/A verdicts
// (bench/results/h200/aa_replayed_*.jsonl) were off by 0.0016 at most, their 252 pairs by 0.0055;
// pairs beside eager `softmax` lay within 0.010 of their median (verdicts_replayed.jsonl). From
// 24 us on as above; series that came later lie within it (aa_24us.jsonl, aa_213us.jsonl).
constexpr std::array<NoisePoint, 2> kReplayNoise{{
    {6e3, 0.005, 0.10},
    {24e3, 0.01, 0.20},
}};

// Between points by log(duration); outside of them the nearest.
NoisePoint Interpolate(std::span<const NoisePoint> points, double call_ns) {
  const auto above = std::find_if(points.begin(), points.end(),
                                  [=](const NoisePoint& at) { return at.call_ns >= call_ns; });
  const NoisePoint& high = above == points.end() ? points.back() : *above;
  const NoisePoint& low = above == points.begin() ? points.front() : *(above - 1);
  const double span = std::log(high.call_ns / low.call_ns);
  const double share = span > 0 ? std::clamp(std::log(call_ns / low.call_ns) / span, 0.0, 1.0) : 0;
  return {call_ns, std::lerp(low.delta, high.delta, share),
          std::lerp(low.clear_margin, high.clear_margin, share)};
}

std::span<const NoisePoint> NoiseTable(NoiseOf noise) {
  switch (noise) {
    case NoiseOf::kHosts:
      break;
    case NoiseOf::kDevice:
      return kDeviceNoise;
    case NoiseOf::kReplays:
      return kReplayNoise;
  }
  return kNoise;
}

// Binomial(n, 1/2) probabilities of 0..n; exact in double for the n used here.
std::vector<double> FairCoinProbabilities(int n) {
  std::vector<double> probabilities(static_cast<size_t>(n) + 1);
  double value = std::ldexp(1.0, -n);
  for (int k = 0; k <= n; ++k) {
    probabilities[static_cast<size_t>(k)] = value;
    value = value * (n - k) / (k + 1);
  }
  return probabilities;
}

struct Interval {
  double low = 0;
  double high = 0;
  double confidence = 0;
};

// The median lies between the k-th smallest and the k-th largest value unless fewer than k values
// lie on one side of it: coverage 1 - 2 P(Binomial(n, 1/2) < k), whatever the distribution. Takes
// the largest k with coverage enough, else 1.
Interval MedianInterval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const int n = static_cast<int>(values.size());
  const std::vector<double> probabilities = FairCoinProbabilities(n);
  Interval interval;
  double below = 0;
  for (int k = 1; k <= (n + 1) / 2; ++k) {
    below += probabilities[static_cast<size_t>(k) - 1];
    const double coverage = std::max(0.0, 1 - 2 * below);
    if (k > 1 && coverage < kCoverageMin) break;
    interval = {values[static_cast<size_t>(k) - 1], values[static_cast<size_t>(n - k)], coverage};
  }
  return interval;
}

struct Tally {
  int faster = 0;
  int slower = 0;
};

Tally Count(std::span<const double> values, double center, double distance) {
  Tally tally;
  for (double value : values) {
    if (value > center + distance) ++tally.faster;
    if (value < center - distance) ++tally.slower;
  }
  return tally;
}

// Whether some look still ahead could find enough successes if every further pair were one.
bool Reachable(int successes, int pairs, int pairs_max) {
  return std::any_of(kLooks.begin(), kLooks.end(), [=](const Look& look) {
    return look.pairs > pairs && look.pairs <= pairs_max &&
           successes + (look.pairs - pairs) >= look.needed;
  });
}

double TieWidth(const SpeedRule& rule) { return std::max(kTieDeltas * rule.delta, kTieMin); }

// How far the nearest pair lies beyond the threshold, on the side of `sign`, and how far the pairs
// are apart.
struct Spread {
  double nearest = 0, range = 0;
};

Spread SpreadBeyond(std::span<const double> values, double center, double sign) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    low = std::min(low, sign * (value - center));
    high = std::max(high, sign * (value - center));
  }
  return {low, high - low};
}

bool Agree(std::span<const double> values, const SpeedRule& rule, double center, double sign) {
  if (values.size() >= kAgreement.size()) return false;
  const Spread spread = SpreadBeyond(values, center, sign);
  return spread.nearest > kAgreementDeltas * rule.delta &&
         spread.nearest - rule.delta > kAgreement[values.size()] * spread.range;
}

// The chance that so many normal pairs at the noise floor agree on one side: over the nearest at a
// the others lie up to a / agreement further, n phi(a) (Phi(a + a / agreement) - Phi(a))^(n - 1).
double AgreementChance(size_t pairs, double agreement) {
  constexpr double kEnd = 8, kStep = 0.02;
  const auto below = [](double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; };
  double chance = 0;
  for (double a = kStep / 2; a < kEnd; a += kStep) {
    const double density = std::exp(-a * a / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    const double within = below(a + a / agreement) - below(a);
    chance += kStep * static_cast<double>(pairs) * density *
              std::pow(within, static_cast<double>(pairs - 1));
  }
  return chance;
}

bool Within(const Interval& interval, double center, double distance) {
  return interval.low >= center - distance && interval.high <= center + distance;
}

// Neither side was shown and none will be.
Decision Undecided(std::span<const double> values, const SpeedRule& rule, double center) {
  const Interval interval = MedianInterval({values.begin(), values.end()});
  const bool sure = interval.confidence >= kCoverageMin;
  const bool near = interval.low <= center + rule.delta && interval.high >= center - rule.delta;
  if (sure && near && Within(interval, center, kUsefulTieWidths * TieWidth(rule)))
    return Decision::kTie;
  return Decision::kUnsettled;
}

// What the look after these pairs says.
Decision AtLook(std::span<const double> values, int needed, const SpeedRule& rule, double center) {
  const Tally tally = Count(values, center, rule.delta);
  if (tally.faster >= needed) return Decision::kFaster;
  if (tally.slower >= needed) return Decision::kSlower;
  const Interval interval = MedianInterval({values.begin(), values.end()});
  if (interval.confidence >= kCoverageMin && Within(interval, center, TieWidth(rule)))
    return Decision::kTie;
  const int pairs = static_cast<int>(values.size());
  if (!Reachable(tally.faster, pairs, rule.pairs_max) &&
      !Reachable(tally.slower, pairs, rule.pairs_max))
    return Undecided(values, rule, center);
  return Decision::kContinue;
}

}  // namespace

std::string_view DecisionName(Decision decision) {
  switch (decision) {
    case Decision::kContinue:
      return "continue";
    case Decision::kFaster:
      return "faster";
    case Decision::kSlower:
      return "slower";
    case Decision::kTie:
      return "tie";
    case Decision::kNotFaster:
      return "not_faster";
    case Decision::kUnsettled:
      return "unsettled";
  }
  return "unknown";
}

SpeedRule RuleForDuration(double call_ns, double threshold, std::span<const NoisePoint> measured,
                          NoiseOf noise) {
  ASSAY_CHECK(call_ns > 0 && threshold > 0);
  SpeedRule rule;
  rule.threshold = threshold;
  const NoisePoint known = Interpolate(NoiseTable(noise), call_ns);
  rule.delta = known.delta;
  rule.clear_margin = known.clear_margin;
  if (!measured.empty()) {
    const NoisePoint own = Interpolate(measured, call_ns);
    rule.delta = std::max(rule.delta, own.delta);
    rule.clear_margin = std::max({rule.clear_margin, own.clear_margin, rule.delta});
  }
  return rule;
}

double RoundLogRatio(const RoundTimes& round) {
  double sum = 0;
  for (int half = 0; half < 2; ++half) {
    ASSAY_CHECK(round.reference_ns[half] > 0 && round.candidate_ns[half] > 0);
    sum += std::log(round.reference_ns[half]) - std::log(round.candidate_ns[half]);
  }
  return sum / 2;
}

double PairLogRatio(std::span<const RoundTimes> rounds) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const RoundTimes& round : rounds) values.push_back(RoundLogRatio(round));
  return Median(std::move(values));
}

double PairLogRatio(const PairSamples& samples) {
  constexpr size_t kBlocks = 4;
  const size_t blocks =
      std::min({samples.order.size(), samples.block_ns.size(), samples.settle_ns.size()});
  std::vector<RoundTimes> rounds;
  for (size_t at = 0; at + kBlocks <= blocks; at += kBlocks) {
    RoundTimes round{};
    size_t references = 0, candidates = 0;
    for (size_t i = at; i < at + kBlocks; ++i) {
      const auto time_ns = static_cast<double>(samples.block_ns[i] - samples.settle_ns[i]);
      if (samples.order[i] == 'r' && references < 2) round.reference_ns[references++] = time_ns;
      if (samples.order[i] == 'c' && candidates < 2) round.candidate_ns[candidates++] = time_ns;
    }
    if (references == 2 && candidates == 2) rounds.push_back(round);
  }
  return rounds.empty() ? 0 : PairLogRatio(rounds);
}

std::vector<double> UnchargedLogRatios(std::span<const PairSamples> pairs) {
  std::vector<double> log_ratios;
  for (PairSamples pair : pairs) {
    const size_t charged = std::min(pair.charged_ns.size(), pair.block_ns.size());
    for (size_t i = 0; i < charged; ++i) pair.block_ns[i] -= pair.charged_ns[i];
    log_ratios.push_back(PairLogRatio(pair));
  }
  return log_ratios;
}

std::span<const Look> Looks() { return kLooks; }

bool IsFutile(int successes, int pairs) {
  ASSAY_CHECK(pairs >= 0 && successes >= 0 && successes <= pairs);
  const size_t at = std::min(static_cast<size_t>(pairs), kFutileFailures.size() - 1);
  return pairs - successes >= kFutileFailures[at];
}

double WinProbability(double success, bool futility) {
  // chance[k]: of k successes so far, and no end yet.
  std::vector<double> chance{1};
  double won = 0;
  for (int pairs = 1; pairs <= kLooks.back().pairs; ++pairs) {
    std::vector<double> next(chance.size() + 1);
    for (size_t k = 0; k < chance.size(); ++k) {
      next[k] += chance[k] * (1 - success);
      next[k + 1] += chance[k] * success;
    }
    chance = std::move(next);
    const auto look = std::find_if(kLooks.begin(), kLooks.end(),
                                   [=](const Look& at) { return at.pairs == pairs; });
    for (size_t k = 0; k < chance.size(); ++k) {
      const int successes = static_cast<int>(k);
      const bool wins = look != kLooks.end() && successes >= look->needed;
      if (wins) won += chance[k];
      if (wins || (futility && IsFutile(successes, pairs))) chance[k] = 0;
    }
  }
  return won;
}

Decision Decide(std::span<const double> pair_log_ratios, const SpeedRule& rule, bool enough_spent,
                bool last) {
  ASSAY_CHECK(rule.threshold > 0 && rule.delta >= 0 && rule.clear_margin >= rule.delta);
  const double center = std::log(rule.threshold);
  const int pairs = static_cast<int>(pair_log_ratios.size());
  // Looks that lie behind are taken again, so that the answer depends on the pairs alone.
  for (const Look& look : kLooks) {
    if (look.pairs > pairs || look.pairs > rule.pairs_max) break;
    const Decision decision =
        AtLook(pair_log_ratios.first(static_cast<size_t>(look.pairs)), look.needed, rule, center);
    if (decision != Decision::kContinue) return decision;
  }
  if (pairs >= kClearPairsMin && (enough_spent || last)) {
    const Tally tally = Count(pair_log_ratios, center, rule.clear_margin);
    if (tally.faster == pairs || Agree(pair_log_ratios, rule, center, 1)) return Decision::kFaster;
    if (tally.slower == pairs || Agree(pair_log_ratios, rule, center, -1)) return Decision::kSlower;
  }
  if (rule.futility &&
      IsFutile(Count(pair_log_ratios, std::log(rule.futile_at()), rule.delta).faster, pairs))
    return Decision::kNotFaster;
  if (last || pairs >= rule.pairs_max) return Undecided(pair_log_ratios, rule, center);
  return Decision::kContinue;
}

Decision DecideCharged(std::span<const double> charged, std::span<const double> uncharged,
                       const SpeedRule& rule, bool enough_spent, bool last) {
  ASSAY_CHECK(charged.size() == uncharged.size());
  const Decision decision = Decide(charged, rule, enough_spent, last);
  if (decision != Decision::kSlower && decision != Decision::kNotFaster) return decision;
  const Decision without = Decide(uncharged, rule, enough_spent, last);
  if (decision == Decision::kNotFaster) {
    if (without == Decision::kContinue) return without;
    return without == Decision::kFaster || without == Decision::kUnsettled ? Decision::kUnsettled
                                                                           : decision;
  }
  const bool agrees = without == Decision::kSlower || without == Decision::kContinue;
  return agrees ? without : Decision::kUnsettled;
}

double CertifiedSpeedup(std::span<const double> pair_log_ratios, const SpeedRule& rule) {
  // Decisions change where a look's last success, or the worst pair, would cease to count.
  std::vector<double> edges;
  for (const Look& look : kLooks) {
    const auto count = static_cast<size_t>(look.pairs);
    if (count > pair_log_ratios.size() || look.pairs > rule.pairs_max) break;
    std::vector<double> values(pair_log_ratios.begin(), pair_log_ratios.begin() + look.pairs);
    std::sort(values.begin(), values.end(), std::greater<>());
    edges.push_back(values[static_cast<size_t>(look.needed) - 1] - rule.delta);
  }
  if (pair_log_ratios.size() >= kClearPairsMin) {
    const Spread spread = SpreadBeyond(pair_log_ratios, 0, 1);
    edges.push_back(spread.nearest - rule.clear_margin);
    if (pair_log_ratios.size() < kAgreement.size())
      edges.push_back(spread.nearest -
                      std::max(kAgreementDeltas * rule.delta,
                               rule.delta + kAgreement[pair_log_ratios.size()] * spread.range));
  }
  std::sort(edges.begin(), edges.end(), std::greater<>());
  constexpr double kJustBelow = 1e-9;
  for (const double edge : edges) {
    SpeedRule below = rule;
    below.threshold = std::exp(edge - kJustBelow);
    if (Decide(pair_log_ratios, below, true, true) == Decision::kFaster) return below.threshold;
  }
  return 0;
}

SpeedEstimate Estimate(std::span<const double> pair_log_ratios, const SpeedRule& rule) {
  SpeedEstimate estimate;
  if (pair_log_ratios.empty()) return estimate;
  const std::vector<double> values(pair_log_ratios.begin(), pair_log_ratios.end());
  estimate.speedup = std::exp(Median(values));
  if (std::ssize(values) < kIntervalPairsMin) {
    estimate.low = estimate.high = estimate.smallest_visible =
        std::numeric_limits<double>::quiet_NaN();
    return estimate;
  }
  const Interval interval = MedianInterval(values);
  estimate.low = std::exp(interval.low);
  estimate.high = std::exp(interval.high);
  estimate.confidence = interval.confidence;
  estimate.smallest_visible = std::exp(rule.delta + (interval.high - interval.low) / 2);
  return estimate;
}

bool BlocksBearOut(double pairs_speedup, double reference_ns, double candidate_ns,
                   double threshold) {
  const double of_pairs = std::log(pairs_speedup / threshold);
  const double of_blocks = std::log(reference_ns / candidate_ns / threshold);
  return of_blocks >= of_pairs / 2;
}

double AgreementBound() {
  double bound = 0;
  for (size_t pairs = kClearPairsMin; pairs < kAgreement.size(); ++pairs)
    bound += AgreementChance(pairs, kAgreement[pairs]);
  return bound;
}

double FalseWinBound() { return WinProbability(0.5, false) + AgreementBound(); }

}  // namespace assay
