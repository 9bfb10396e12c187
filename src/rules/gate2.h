// Gate 2, speed: a sequential exact sign test over pairs of fresh hosts; before its first look,
// pairs decide where they agree. Pure. docs/measurement.md
// derives every constant; bench/gate2_simulation checks them against drift, spikes and placement
// bias of known size.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/machine_profile.h"
#include "model/verdict.h"

namespace assay {

enum class Decision { kContinue, kFaster, kSlower, kTie, kNotFaster, kUnsettled };
std::string_view DecisionName(Decision decision);

struct SpeedRule {
  double threshold = 1;  // --p: the speedup that must be exceeded, strictly
  double delta = 0.005;  // noise floor: ln-ratio that identical programs may show, by duration
  double clear_margin =
      0.25;  // ln-ratio beyond the largest pair bias ever measured: three pairs suffice
  int pairs_max = 32;
  // Stop as soon as a win is out of reach (IsFutile): kNotFaster. Whether the candidate is slower,
  // or a tie, is not pursued then.
  bool futility = false;
  // The speedup that must stay in reach, if that is more than the threshold: the best so far.
  double bound = 0;

  double futile_at() const { return bound > threshold ? bound : threshold; }
};

// The kind of comparison, which decides its noise. kHosts: at least one side's code, a candidate's
// or PyTorch's, runs in its host. kDevice: both sides are in the device form, which the judge's own
// host launches. kReplays: blocks of both sides are CUDA graphs.
enum class NoiseOf { kHosts, kDevice, kReplays };

// Returns noise floor and clear margin for calls of this duration: those of the built-in table
// (docs/measurement.md), raised where this machine's own points are higher. `measured`: these
// points, by ascending call_ns. They never lower a value: a quiet minute is no proof.
SpeedRule RuleForDuration(double call_ns, double threshold,
                          std::span<const NoisePoint> measured = {},
                          NoiseOf noise = NoiseOf::kHosts);

// The block times of one round in the order they ran: 4 blocks, reference and candidate twice each.
struct RoundTimes {
  double reference_ns[2];
  double candidate_ns[2];
};
// Return y: of a round, the mean of ln(t_reference) - ln(t_candidate) over its two halves; of a
// pair, the median of its rounds.
double RoundLogRatio(const RoundTimes& round);
double PairLogRatio(std::span<const RoundTimes> rounds);
// Returns the same from a verdict's record of the pair; 0 if it has no whole round.
double PairLogRatio(const PairSamples& samples);
// Returns y of each pair, without the times that were charged to the candidate.
std::vector<double> UnchargedLogRatios(std::span<const PairSamples> pairs);

// Pair counts at which the test looks, in order (9, 14, 24, 32), and the successes needed at each.
struct Look {
  int pairs;
  int needed;
};
std::span<const Look> Looks();

// Returns true if a win is out of reach after `pairs` pairs of which `successes` were over the
// threshold by more than delta: the number of the others is at the boundary of docs/measurement.md.
// To stop there loses less than 1% of power, at any chance of a success.
bool IsFutile(int successes, int pairs);

// Returns the probability that the looks call a candidate faster whose pairs are successes with
// probability `success`, each by itself; with or without stops for futility. Exact, by dynamic
// programming. The clear case is left out.
double WinProbability(double success, bool futility);

// Decides after these pairs. `enough_spent`: a clear case may stop from three pairs on. `last`:
// time or budget allows no more pairs, so kContinue is not returned.
Decision Decide(std::span<const double> pair_log_ratios, const SpeedRule& rule, bool enough_spent,
                bool last);

// Decides where the candidate is charged for work that it could have done before the clock ran. A
// charge prevents a win by such work, and must not cause a loss: kSlower stands only if the ratios
// without the charges give it, too, and kNotFaster only if they give that, a tie or kSlower.
// Otherwise the decision is kUnsettled.
Decision DecideCharged(std::span<const double> charged, std::span<const double> uncharged,
                       const SpeedRule& rule, bool enough_spent, bool last);

// Returns true if single blocks bear out the pairs: the ratio of the medians of all blocks' times a
// call shows at least half of the gain over the threshold, by logarithms. A gain that comes from
// less than half of the blocks does not show there. `pairs_speedup`: over 0, the median of the
// pairs; the times are over 0 [ns].
bool BlocksBearOut(double pairs_speedup, double reference_ns, double candidate_ns,
                   double threshold);

// Returns the largest threshold at which these pairs are decided kFaster, whatever threshold they
// were measured for; 0 if there is none. It exceeds the true gain times exp(delta) with at most the
// probability FalseWinBound(): thresholds are nested, so exceeding that gain takes as many
// successes, or as much agreement. Where the clear case decides, the threshold rests on the margin,
// as that decision does.
double CertifiedSpeedup(std::span<const double> pair_log_ratios, const SpeedRule& rule);

// Fewer pairs give no interval.
inline constexpr int kIntervalPairsMin = 3;

struct SpeedEstimate {
  double speedup = 0;        // exp(median)
  double low = 0, high = 0;  // interval by exact order statistics, as factors; NaN: none
  double confidence = 0;     // the interval's exact coverage for the median; the narrowest with at
                             // least 0.99, else the widest
  double smallest_visible = 0;  // exp(delta + half width): the smallest factor that these pairs can
                                // show; NaN without an interval
};
SpeedEstimate Estimate(std::span<const double> pair_log_ratios, const SpeedRule& rule);

// Returns the probability that pairs of normal distribution, at a true gain of delta, agree at some
// count before the first look: the sum over the counts.
double AgreementBound();
// Returns the probability that the looks ever call a fair coin (H0 at the edge) faster, exact by
// dynamic programming, and AgreementBound().
double FalseWinBound();

}  // namespace assay
