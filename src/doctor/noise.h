// Measures this machine's noise: how far verdicts over identical programs differ, by duration of a
// call. Runs the ordinary judge on a kernel against its own copy.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hosts/host.h"
#include "model/doctor_report.h"
#include "model/problem.h"
#include "toolchain/build.h"

namespace assay {

// The problem y = x / 2 + 1 over `count` elements, and a native kernel for it.
ProblemRequest ScaleProblem(int64_t count);
CandidateSource ScaleCandidate();

struct Noise {
  double empty_call_ns = 0, empty_python_call_ns = 0;
  std::vector<NoisePoint> points;
  bool disturbed = false;  // other programs took the cores meanwhile
};

// Takes about two minutes. Errors: as the judge's.
Result<Noise> MeasureNoise(const std::string& python, StopToken stop,
                           const std::function<void(double fraction)>& progress);

// Returns the 99th percentile of |median of nine| over many draws of nine from these pairs: how far
// from 0 a verdict of identical programs lies. Pure, and deterministic.
double VerdictNoise(std::span<const double> pair_log_ratios);

}  // namespace assay
