// How far verdicts over identical programs are apart on this machine, by duration of a call: the
// ordinary judge, on a kernel against its own copy.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hosts/host.h"
#include "model/machine_profile.h"
#include "model/problem.h"
#include "toolchain/build.h"

namespace assay {

// A clear margin is this much over the widest pair seen: more pairs would have seen wider ones.
inline constexpr double kNoiseMarginFactor = 1.5;

// y = x / 2 + 1 over `count` elements, and a native kernel that does it.
ProblemRequest ScaleProblem(int64_t count);
CandidateSource ScaleCandidate();

struct Noise {
  double empty_call_ns = 0, empty_python_call_ns = 0;
  std::vector<NoisePoint> points;
  bool disturbed = false;  // other programs took the cores meanwhile
};

// Errors: as the judge's. Takes about two minutes.
Result<Noise> MeasureNoise(const std::string& python, StopToken stop,
                           const std::function<void(double fraction)>& progress);

// The 99th percentile of |median of nine| when nine are drawn from these pairs again and again: how
// far from 0 a verdict of identical programs lies. Pure; the same for the same pairs.
double VerdictNoise(std::span<const double> pair_log_ratios);

}  // namespace assay
