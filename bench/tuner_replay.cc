// Replays the tuner's choosers on a recorded table of measurements (bench/tuner_table.py): how near
// to the best of the whole space does each come, after how many evaluations? Nothing is measured.
//
// Usage: tuner_replay SOURCE TABLE [SEEDS [WIDTH [STRATEGY...]]]. One line of JSON a strategy and
// share of the space: the median, over seeds, of the best time of the table over the best time that
// was found; its interval (95%, by order statistics), and the worst seed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "score/intervals.h"
#include "search/points.h"

namespace assay {
namespace {

constexpr double kShares[] = {0.01, 0.02, 0.05, 0.1};

struct Table {
  TuneSpace space;
  std::map<TunePoint, double> ns;  // 0: it did not run
  double best_ns = 0;
};

Result<Table> ReadTable(const char* source_path, const char* table_path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string source, ReadFile(source_path, 1 << 20));
  const bool is_device = std::string_view(source_path).ends_with(".cu");
  auto space = ParseTuneSpace(source, is_device ? "cu" : "cpp");
  if (!space) return UsageError(space.error());
  Table table{std::move(*space), {}, 0};
  std::ifstream lines(table_path);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    TunePoint point;
    for (const TuneLine& tune : table.space.tunes) {
      const auto found = std::find(tune.values.begin(), tune.values.end(),
                                   json["point"].at(tune.name).get<int64_t>());
      point.push_back(static_cast<size_t>(found - tune.values.begin()));
    }
    const double ns = json["ns"].is_number() ? json["ns"].get<double>() : 0;
    table.ns[point] = ns;
    if (ns > 0 && (table.best_ns == 0 || ns < table.best_ns)) table.best_ns = ns;
  }
  if (table.best_ns == 0) return UsageError(fmt::format("{} has no times", table_path));
  return table;
}

// The share of the best that was reached after each evaluation. As in a search, `width` points are
// in hand at a time.
std::vector<double> Replay(const Table& table, const Chooser& choose, uint64_t seed, size_t count,
                           size_t width) {
  TunerKnowledge known(table.space);
  std::deque<TunePoint> in_hand{TunePoint(table.space.tunes.size(), 0)};
  known.Ask(in_hand.front());
  std::vector<double> reached;
  for (size_t next = 1; reached.size() < count;) {
    while (in_hand.size() < width) {
      StepRandom random(seed, fmt::format("judge/{}", next++));
      const auto choice = choose(known, random);
      if (!choice) break;
      known.Ask(choice->point);
      in_hand.push_back(choice->point);
    }
    if (in_hand.empty()) break;  // no point is left
    const TunePoint point = in_hand.front();
    in_hand.pop_front();
    const auto found = table.ns.find(point);
    const double ns = found == table.ns.end() ? 0 : found->second;
    const double ratio = ns > 0 ? table.best_ns / ns : 0;
    known.Tell(point, ratio);
    reached.push_back(std::max(ratio, reached.empty() ? 0 : reached.back()));
  }
  return reached;
}

// Of the median, with 95% at least: the order statistics by the binomial distribution.
std::optional<Interval> MedianInterval(const std::vector<double>& values) {
  return BestOfKInterval(values, 1);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

int Run(int argument_count, char** arguments) {
  if (argument_count < 3) {
    std::fputs("usage: tuner_replay SOURCE TABLE [SEEDS [WIDTH [STRATEGY...]]]\n", stderr);
    return 2;
  }
  const auto table = ReadTable(arguments[1], arguments[2]);
  if (!table) {
    std::fputs((table.error().message + "\n").c_str(), stderr);
    return 2;
  }
  const int seeds = argument_count > 3 ? std::atoi(arguments[3]) : 20;
  const size_t width = argument_count > 4 ? static_cast<size_t>(std::atoi(arguments[4])) : 8;
  const auto points = static_cast<double>(table->ns.size());
  const auto count = static_cast<size_t>(points * kShares[std::size(kShares) - 1]);
  std::vector<std::string> strategies(arguments + std::min(argument_count, 5),
                                      arguments + argument_count);
  if (strategies.empty()) strategies = {"sample", "refine", "evolve", "surrogate"};
  for (const std::string& strategy : strategies) {
    const auto made = MakeChooser(strategy);
    if (!made) {
      std::fputs((made.error().message + "\n").c_str(), stderr);
      return 2;
    }
    const Chooser& choose = *made;
    std::vector<std::vector<double>> runs;
    for (int seed = 1; seed <= seeds; ++seed)
      runs.push_back(Replay(*table, choose, static_cast<uint64_t>(seed), count, width));
    for (const double share : kShares) {
      const auto at = std::max<size_t>(1, static_cast<size_t>(share * points));
      std::vector<double> reached;
      for (const auto& run : runs) reached.push_back(run[std::min(at, run.size()) - 1]);
      const auto interval = MedianInterval(reached);
      fmt::print("{}\n", nlohmann::ordered_json{{"strategy", strategy},
                                                {"points", table->ns.size()},
                                                {"evaluations", at},
                                                {"share", share},
                                                {"seeds", seeds},
                                                {"width", width},
                                                {"reached_median", Median(reached)},
                                                {"reached_low", interval ? interval->low : 0},
                                                {"reached_high", interval ? interval->high : 1},
                                                {"reached_worst",
                                                 *std::min_element(reached.begin(), reached.end())}}
                             .dump());
    }
  }
  return 0;
}

}  // namespace
}  // namespace assay

int main(int argument_count, char** arguments) { return assay::Run(argument_count, arguments); }
