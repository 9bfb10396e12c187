// What gate 2's rule decides over pairs that were measured between a program and its own copy, with
// a known gain added to each:
//
//   aa_replay hosts|device|replays FILE.jsonl...
//
// The files are A/A series (bench/aa.py): each row has the blocks of a verdict's pairs. They are
// given to the rule one by one, as they were measured, until it decides or they end (`open`). The
// word before them says whose noise the rule takes. Prints a line of JSON for each gain.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "rules/gate2.h"
#include "rules/pair_budget.h"

namespace assay {
namespace {

constexpr double kGains[] = {0, 0.02, 0.042, 0.07, 0.11, 0.2, 0.52};

struct Series {
  double call_ns = 0;
  std::vector<double> log_ratios;
};

std::vector<Series> Read(const char* path) {
  std::vector<Series> all;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line, nullptr, false);
    if (!row.is_object() || !row.contains("samples") || !row["samples"].is_array()) continue;
    if (!row.contains("result") || !row["result"].is_object()) continue;
    Series series;
    series.call_ns = row["result"].value("time_ns", 0.0);
    for (const auto& pair : row["samples"]) {
      PairSamples samples;
      samples.order = pair.value("order", std::string());
      samples.block_ns = pair.value("block_ns", samples.block_ns);
      samples.settle_ns = pair.value("settle_ns", samples.settle_ns);
      series.log_ratios.push_back(PairLogRatio(samples));
    }
    if (series.call_ns > 0 && series.log_ratios.size() >= kPairsMin)
      all.push_back(std::move(series));
  }
  return all;
}

struct Sums {
  int faster = 0, slower = 0, tie = 0, open = 0;
  int pairs = 0, early = 0;  // of those that are faster; of these, before the first look
};

void Add(const Series& series, double gain, NoiseOf noise, Sums* sums) {
  const SpeedRule rule = RuleForDuration(series.call_ns, 1, {}, noise);
  std::vector<double> pairs;
  for (const double log_ratio : series.log_ratios) {
    pairs.push_back(log_ratio + std::log1p(gain));
    switch (Decide(pairs, rule, pairs.size() >= kPairsMin, false)) {
      case Decision::kContinue:
        continue;
      case Decision::kFaster:
        ++sums->faster;
        sums->pairs += static_cast<int>(pairs.size());
        if (std::ssize(pairs) < Looks()[0].pairs) ++sums->early;
        return;
      case Decision::kSlower:
        ++sums->slower;
        return;
      default:
        ++sums->tie;
        return;
    }
  }
  ++sums->open;
}

int Main(int count, char** arguments) {
  const std::string_view kind = count > 1 ? arguments[1] : "";
  if (count < 3 || (kind != "hosts" && kind != "device" && kind != "replays")) {
    fmt::print(stderr, "usage: aa_replay hosts|device|replays FILE.jsonl...\n");
    return 2;
  }
  const NoiseOf noise = kind == "device"    ? NoiseOf::kDevice
                        : kind == "replays" ? NoiseOf::kReplays
                                            : NoiseOf::kHosts;
  std::vector<Series> all;
  for (int i = 2; i < count; ++i)
    for (Series& series : Read(arguments[i])) all.push_back(std::move(series));
  for (const double gain : kGains) {
    Sums sums;
    for (const Series& series : all) Add(series, gain, noise, &sums);
    fmt::print(
        "{{\"noise\": \"{}\", \"files\": {}, \"verdicts\": {}, \"gain\": {}, \"faster\": {}, "
        "\"slower\": {}, \"tie\": {}, \"open\": {}, \"pairs_of_faster\": {:.2f}, "
        "\"before_the_first_look\": {}}}\n",
        kind, count - 2, all.size(), gain, sums.faster, sums.slower, sums.tie, sums.open,
        sums.faster > 0 ? static_cast<double>(sums.pairs) / sums.faster : 0.0, sums.early);
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int count, char** arguments) { return assay::Main(count, arguments); }
