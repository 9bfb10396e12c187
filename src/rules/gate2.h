// Gate 2, speed: a sequential exact sign test over pairs of fresh hosts. Pure. docs/measurement.md
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

enum class Decision { kContinue, kFaster, kSlower, kTie, kUnsettled };
std::string_view DecisionName(Decision decision);

struct SpeedRule {
  double threshold = 1;  // --p: the speedup that must be exceeded, strictly
  double delta = 0.005;  // noise floor: ln-ratio that identical programs may show, at this duration
  double clear_margin =
      0.25;  // ln-ratio beyond the largest pair bias ever measured: may stop at three pairs
  int pairs_max = 32;
};

// kHosts: code of a side runs in its host, be it a candidate's or PyTorch for a reference; kDevice:
// both sides are in the device form, which the judge's own host launches; kReplays: blocks of both
// are CUDA graphs, whoever made them.
enum class NoiseOf { kHosts, kDevice, kReplays };

// Noise floor and clear margin for calls of this duration: the built-in table
// (docs/measurement.md), raised where `measured`, this machine's own points in growing order of
// call_ns, says more. A machine's own measurement never lowers them: it may have been lucky.
SpeedRule RuleForDuration(double call_ns, double threshold,
                          std::span<const NoisePoint> measured = {},
                          NoiseOf noise = NoiseOf::kHosts);

// The block times of one round in the order they ran: 4 blocks, reference and candidate twice each.
struct RoundTimes {
  double reference_ns[2];
  double candidate_ns[2];
};
// y of a round: mean of ln(t_reference) - ln(t_candidate) over its two halves; of a pair: the
// median of its rounds.
double RoundLogRatio(const RoundTimes& round);
double PairLogRatio(std::span<const RoundTimes> rounds);
// The same from a verdict's record of the pair; 0 where it has no whole round.
double PairLogRatio(const PairSamples& samples);
// Of each pair, without what was charged to the candidate.
std::vector<double> UnchargedLogRatios(std::span<const PairSamples> pairs);

// Pair counts at which the test looks, in order (9, 14, 24, 32), and the successes needed at each.
struct Look {
  int pairs;
  int needed;
};
std::span<const Look> Looks();

// What to do after these pairs. `enough_spent`: a clear case may stop from three pairs on. `last`:
// no more pairs can be had (time or budget): never returns kContinue.
Decision Decide(std::span<const double> pair_log_ratios, const SpeedRule& rule, bool enough_spent,
                bool last);

// The same where a time is charged to the candidate for what it could have done before the clock:
// that keeps it from winning by it, and must not make it lose. `slower` needs the ratios without
// the charges, too; where those call anything else the decision is kUnsettled.
Decision DecideCharged(std::span<const double> charged, std::span<const double> uncharged,
                       const SpeedRule& rule, bool enough_spent, bool last);

// The largest threshold at which these pairs are decided `faster`, whatever threshold they were
// taken for; 0 where there is none. By the looks it lies over the true gain times exp(delta) with
// at most the chance of FalseWinBound(): thresholds are nested, so it would take as many successes
// over that gain. Where the clear case decides, it rests on the margin, as that decision does.
double CertifiedSpeedup(std::span<const double> pair_log_ratios, const SpeedRule& rule);

struct SpeedEstimate {
  double speedup = 0;        // exp(median)
  double low = 0, high = 0;  // interval by exact order statistics, as factors
  double confidence = 0;  // its exact coverage for the median: the narrowest interval with at least
                          // 0.99, else the widest
  double smallest_visible =
      0;  // exp(delta + half width): the smallest factor that could have been seen
};
SpeedEstimate Estimate(std::span<const double> pair_log_ratios, const SpeedRule& rule);

// Probability that a fair coin (H0 at the edge) is ever called faster by the looks: exact, by
// dynamic programming.
double FalseWinBound();

}  // namespace assay
