// The outcomes and the pairs of hosts of a run if the speed gate ended after fewer pairs than 32:
//
//   pair_limits VERDICTS.jsonl [TRIALS]
//
// The rows of a run (docs/run.md) give the pairs that were measured. A trial draws 32 pairs for
// each candidate, out of its own with replacement, each moved by a Gaussian of 1%, and decides by
// the gate's rule with futility. Prints a line of JSON for each limit. Deterministic.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "rules/gate2.h"
#include "run/rows.h"

namespace assay {
namespace {

constexpr int kPairs = 32;
constexpr double kMovedBy = 0.01;

struct Measured {
  SpeedRule rule;
  std::vector<double> log_ratios;
};

std::vector<Measured> MeasuredOf(const std::vector<RunRow>& rows) {
  std::vector<Measured> all;
  for (const RunRow& row : rows) {
    if (!row.verdict || !row.verdict->speed) continue;
    const Speed& speed = *row.verdict->speed;
    const BaselineResult& result = speed.baselines.at(speed.headline);
    Measured measured;
    measured.rule.threshold = speed.threshold;
    measured.rule.delta = result.delta;
    measured.rule.clear_margin = result.clear_margin;
    measured.rule.futility = true;
    for (const PairSamples& samples : row.verdict->samples)
      if (samples.baseline == speed.headline) measured.log_ratios.push_back(PairLogRatio(samples));
    if (!measured.log_ratios.empty()) all.push_back(std::move(measured));
  }
  return all;
}

std::vector<double> Draw(const Measured& measured, std::mt19937_64& random) {
  std::uniform_int_distribution<size_t> which(0, measured.log_ratios.size() - 1);
  std::normal_distribution<double> moved(0, kMovedBy);
  std::vector<double> pairs;
  for (int i = 0; i < kPairs; ++i)
    pairs.push_back(measured.log_ratios[which(random)] + moved(random));
  return pairs;
}

struct Sums {
  std::map<std::string, int> outcomes;
  long pairs = 0;
};

void AddTrial(const std::vector<double>& drawn, const SpeedRule& rule, Sums* sums) {
  Decision decision = Decision::kContinue;
  int pairs = 2;
  while (decision == Decision::kContinue) {
    ++pairs;
    decision = Decide(std::span(drawn).first(static_cast<size_t>(pairs)), rule, true,
                      pairs >= rule.pairs_max);
  }
  ++sums->outcomes[std::string(DecisionName(decision))];
  sums->pairs += pairs;
}

int Main(int count, char** arguments) {
  int trials = 1000;
  const std::string_view asked = count > 2 ? arguments[2] : "1000";
  if (count < 2 || std::from_chars(asked.begin(), asked.end(), trials).ec != std::errc() ||
      trials < 1) {
    std::fputs("usage: pair_limits VERDICTS.jsonl [TRIALS]\n", stderr);
    return 2;
  }
  const auto rows = ReadRunRows(arguments[1]);
  if (!rows) {
    fmt::print(stderr, "pair_limits: {}\n", rows.error().message);
    return 2;
  }
  const std::vector<Measured> measured = MeasuredOf(*rows);
  double wins_of_all = 0;
  for (const int limit : {32, 24, 18, 15, 14, 9}) {
    std::mt19937_64 random(1);  // the same pairs for each limit
    Sums sums;
    for (Measured each : measured) {
      each.rule.pairs_max = limit;
      for (int trial = 0; trial < trials; ++trial) AddTrial(Draw(each, random), each.rule, &sums);
    }
    const double all = static_cast<double>(measured.size()) * trials;
    const double wins = sums.outcomes["faster"] / all;
    if (limit == kPairs) wins_of_all = wins;
    std::string outcomes;
    for (const auto& [name, times] : sums.outcomes)
      outcomes += fmt::format("{}\"{}\": {:.4f}", outcomes.empty() ? "" : ", ", name, times / all);
    fmt::print(
        "{{\"limit\": {}, \"candidates\": {}, \"trials\": {}, \"pairs_a_candidate\": {:.2f}, "
        "\"wins_lost\": {:.4f}, \"outcomes\": {{{}}}}}\n",
        limit, measured.size(), trials, static_cast<double>(sums.pairs) / all,
        1 - wins / wins_of_all, outcomes);
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) { return assay::Main(count, arguments); }
