// Coverage at k = 100 on recorded measurements (bench/tuner_table.py), where the truth is known.
// Each bar is a problem: find a variant with at least this share of the speed of the whole space's
// best one. An attempt is a variant drawn at random, so its chance is the share of variants over
// the bar; no variant reaches a bar above 1, so that problem is out of reach. The fit of
// score/coverage.h sees the attempts alone. Nothing is measured.
//
// Usage: coverage_replay TABLE [SEEDS]. One line of JSON a seed, then one with the curves: for k
// from 1 to 100 the true coverage, and as means over seeds the measured one, 1 - (1 - p)^k, and the
// fitted one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "score/at_k.h"
#include "score/coverage.h"
#include "search/random.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBars[] = {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.05, 1.1, 1.2};
constexpr int64_t kAttempts = 100;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

// Speeds as shares of the best; 0: it did not run.
std::vector<double> ReadSpeeds(const char* path) {
  std::vector<double> speeds;
  double best = 0;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    const Json ns = Json::parse(line)["ns"];
    speeds.push_back(ns.is_number() && ns.get<double>() > 0 ? 1 / ns.get<double>() : 0);
    best = std::max(best, speeds.back());
  }
  for (double& speed : speeds) speed /= best;
  return speeds;
}

std::vector<AttemptCount> Draw(const std::vector<double>& speeds, uint64_t seed) {
  std::vector<AttemptCount> problems;
  for (const double bar : kBars) {
    StepRandom random(seed, fmt::format("bar/{}", bar));
    AttemptCount count{kAttempts, 0};
    for (int64_t i = 0; i < kAttempts; ++i)
      if (speeds[random.Below(speeds.size())] >= bar) ++count.correct;
    problems.push_back(count);
  }
  return problems;
}

struct Curves {
  std::vector<double> measured = std::vector<double>(kAttempts, 0.0), common = measured,
                      fitted = measured;
};

void AddTo(const std::vector<AttemptCount>& problems, const Coverage& coverage, Curves* sum) {
  for (int64_t k = 1; k <= kAttempts; ++k) {
    const auto at = static_cast<size_t>(k - 1);
    for (const AttemptCount& problem : problems)
      sum->measured[at] +=
          PassAtK(problem.attempts, problem.correct, k) / static_cast<double>(problems.size());
    sum->common[at] += 1 - std::pow(1 - coverage.correct, static_cast<double>(k));
    sum->fitted[at] += coverage.fit.At(k);
  }
}

int Run(int argument_count, char** arguments) {
  const auto speeds = argument_count < 2 ? std::vector<double>() : ReadSpeeds(arguments[1]);
  if (speeds.empty()) {
    std::fputs("usage: coverage_replay TABLE [SEEDS], a table by bench/tuner_table.py\n", stderr);
    return 2;
  }
  const int seeds = argument_count > 2 ? std::atoi(arguments[2]) : 20;
  Curves sum;
  std::vector<double> out_of_reach;
  int contained = 0;
  std::vector<double> chances;
  for (const double bar : kBars)
    chances.push_back(static_cast<double>(std::count_if(speeds.begin(), speeds.end(),
                                                        [&](double s) { return s >= bar; })) /
                      static_cast<double>(speeds.size()));
  const double truth = static_cast<double>(std::count(chances.begin(), chances.end(), 0.0)) /
                       static_cast<double>(chances.size());
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto problems = Draw(speeds, static_cast<uint64_t>(seed));
    const auto coverage = CoverageOf(problems).value();
    AddTo(problems, coverage, &sum);
    out_of_reach.push_back(coverage.fit.out_of_reach);
    contained += coverage.fit.low <= truth && truth <= coverage.fit.high;
    Json row = {{"seed", seed}, {"attempts", kAttempts}, {"correct", Json::array()}};
    for (const AttemptCount& problem : problems) row["correct"].push_back(problem.correct);
    row["out_of_reach"] = coverage.fit.out_of_reach;
    row["out_of_reach_interval"] = {coverage.fit.low, coverage.fit.high};
    row["alpha"] = coverage.fit.alpha;
    row["beta"] = coverage.fit.beta;
    fmt::print("{}\n", row.dump());
  }
  Json curves = Json::array();
  for (int64_t k = 1; k <= kAttempts; ++k) {
    const auto at = static_cast<size_t>(k - 1);
    double exact = 0;
    for (const double chance : chances)
      exact +=
          (1 - std::pow(1 - chance, static_cast<double>(k))) / static_cast<double>(chances.size());
    curves.push_back({{"k", k},
                      {"true", exact},
                      {"measured", sum.measured[at] / seeds},
                      {"common", sum.common[at] / seeds},
                      {"fitted", sum.fitted[at] / seeds}});
  }
  fmt::print("{}\n", Json{{"seeds", seeds},
                          {"variants", speeds.size()},
                          {"bars", kBars},
                          {"chances", chances},
                          {"out_of_reach_true", truth},
                          {"out_of_reach_median", Median(out_of_reach)},
                          {"intervals_with_truth", contained},
                          {"curves", curves}}
                         .dump());
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argument_count, char** arguments) { return assay::Run(argument_count, arguments); }
