#include "doctor/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "base/check.h"
#include "base/hash.h"
#include "rules/gate2.h"
#include "session/judge.h"

namespace assay {
namespace {

constexpr std::string_view kProblem = R"python("""Each element halved, plus one."""

import torch
import torch.nn as nn

COUNT = 1


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 0.5 + 1.0


def get_inputs():
    return [torch.randn(COUNT)]
)python";

constexpr std::string_view kCandidate =
    R"cpp(#include <assay/kernel.h>

          ASSAY_KERNEL(assay::Tensor<const float, 1> x, assay::Tensor<float, 1> out) {
            const float* from = x.data();
            float* to = out.data();
            for (int64_t i = 0; i < x.size(0); ++i) to[i] = from[i] * 0.5f + 1.0f;
          }
    )cpp";

// From about 2 us to about 1 ms a call.
constexpr std::array<int64_t, 4> kCounts{1 << 12, 1 << 15, 1 << 18, 1 << 21};
constexpr double kDisturbedShareMax = 0.05;
constexpr size_t kVerdicts = 3;  // a duration

// `judged` is told after each verdict.
Result<std::vector<Verdict>> Judge(JudgeRequest request, StopToken stop,
                                   const std::function<void()>& judged) {
  std::vector<Verdict> verdicts;
  JudgeEvents events;
  events.verdict = [&](const Verdict& verdict) {
    verdicts.push_back(verdict);
    judged();
  };
  ASSAY_RETURN_IF_ERROR(JudgeCandidates(request, events, stop));
  for (const Verdict& verdict : verdicts)
    if (!verdict.speed)
      return EnvironmentError(fmt::format("a trial judgement went wrong: {}", verdict.message));
  return verdicts;
}

JudgeRequest TrialOf(int64_t count, const std::string& python) {
  JudgeRequest request;
  request.terms.problem = ScaleProblem(count);
  request.terms.python = python;
  return request;
}

}  // namespace

ProblemRequest ScaleProblem(int64_t count) {
  ProblemRequest problem;
  problem.name = "scale";
  problem.path = "scale.py";
  problem.source = kProblem;
  problem.set["COUNT"] = std::to_string(count);
  return problem;
}

CandidateSource ScaleCandidate() {
  return {"scale.cpp", std::string(kCandidate), Sha256Hex(kCandidate), CandidateForm::kNative,
          "cpp"};
}

double VerdictNoise(std::span<const double> pair_log_ratios) {
  ASSAY_CHECK(!pair_log_ratios.empty());
  constexpr int kTrials = 5000, kPairs = 9;
  std::mt19937_64 random(1);
  std::vector<double> distances;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::array<double, kPairs> drawn;
    for (double& value : drawn) value = pair_log_ratios[random() % pair_log_ratios.size()];
    std::nth_element(drawn.begin(), drawn.begin() + kPairs / 2, drawn.end());
    distances.push_back(std::abs(drawn[kPairs / 2]));
  }
  const auto at = distances.begin() + kTrials * 99 / 100;
  std::nth_element(distances.begin(), at, distances.end());
  return *at;
}

Result<Noise> MeasureNoise(const std::string& python, StopToken stop,
                           const std::function<void(double fraction)>& progress) {
  Noise noise;
  constexpr double kSteps = 1 + kVerdicts * kCounts.size();
  double done = 0;
  const auto judged = [&] { progress(++done / kSteps); };
  progress(0);
  JudgeRequest empty = TrialOf(1, python);
  empty.candidates = {ScaleCandidate()};
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Verdict> first, Judge(std::move(empty), stop, judged));
  const BaselineResult& eager = first.front().speed->baselines.at("eager");
  noise.empty_call_ns = eager.candidate_time_ns;
  noise.empty_python_call_ns = eager.time_ns;
  for (size_t i = 0; i < kCounts.size(); ++i) {
    JudgeRequest request = TrialOf(kCounts[i], python);
    request.candidates.assign(kVerdicts, ScaleCandidate());
    request.terms.opponent.against = ScaleCandidate();
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Verdict> verdicts,
                           Judge(std::move(request), stop, judged));
    std::vector<double> pairs;
    double call_ns = 0;
    for (const Verdict& verdict : verdicts) {
      const BaselineResult& result = verdict.speed->baselines.at("against");
      call_ns += result.candidate_time_ns / kVerdicts;
      noise.disturbed |= result.disturbed_share > kDisturbedShareMax;
      for (const PairSamples& pair : verdict.samples) pairs.push_back(PairLogRatio(pair));
    }
    const double widest = std::abs(*std::max_element(
        pairs.begin(), pairs.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
    noise.points.push_back({call_ns, VerdictNoise(pairs), kNoiseMarginFactor * widest});
  }
  std::sort(noise.points.begin(), noise.points.end(),
            [](const NoisePoint& a, const NoisePoint& b) { return a.call_ns < b.call_ns; });
  return noise;
}

}  // namespace assay
