#include "score/score.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "score/at_k.h"

namespace assay {
namespace {

constexpr double kNormalQuantile975 = 1.959963984540054;

int64_t CountAttempts(const ProblemAttempts& problem, double p, bool certified) {
  return std::count_if(problem.attempts.begin(), problem.attempts.end(),
                       [&](const Attempt& attempt) { return Qualifies(attempt, p, certified); });
}

Share FastShare(const Selection& selection, double p, bool certified) {
  const auto count =
      std::count_if(selection.problems.begin(), selection.problems.end(),
                    [&](const auto& problem) { return CountAttempts(problem, p, certified) > 0; });
  return ShareOf(count, selection.asked);
}

ProblemScore Summary(const ProblemAttempts& problem) {
  ProblemScore score;
  score.problem = problem.problem;
  score.attempts = static_cast<int64_t>(problem.attempts.size());
  for (const Attempt& attempt : problem.attempts) {
    score.correct += attempt.correct() ? 1 : 0;
    score.prepared += attempt.prepares_weights ? 1 : 0;
    score.stage = std::max(score.stage, attempt.stage);
    score.speedup = std::max(score.speedup, attempt.speedup);
    score.certified_speedup = std::max(score.certified_speedup, attempt.certified_speedup);
  }
  const auto best = std::max_element(problem.attempts.begin(), problem.attempts.end(),
                                     [](const Attempt& one, const Attempt& other) {
                                       return std::tie(one.speedup, one.stage) <
                                              std::tie(other.speedup, other.stage);
                                     });
  if (best != problem.attempts.end()) score.best = *best;
  return score;
}

void AddMeans(Score* score) {
  double log_correct = 0, log_clamped = 0;
  for (const ProblemScore& problem : score->problems) {
    if (problem.speedup <= 0) continue;
    ++score->mean_correct_problems;
    log_correct += std::log(problem.speedup);
    log_clamped += std::log(std::max(1.0, problem.speedup));
  }
  if (score->mean_correct_problems > 0)
    score->mean_correct = std::exp(log_correct / static_cast<double>(score->mean_correct_problems));
  if (score->asked > 0)
    score->mean_clamped = std::exp(log_clamped / static_cast<double>(score->asked));
}

constexpr uint64_t kBootstrapSeed = 1;  // equal verdicts have equal scores

// The problem with the fewest attempts, of those that were attempted.
const ProblemAttempts* FewestAttempts(const Selection& selection) {
  const ProblemAttempts* fewest = nullptr;
  for (const ProblemAttempts& problem : selection.problems)
    if (!problem.attempts.empty() &&
        (fewest == nullptr || problem.attempts.size() < fewest->attempts.size()))
      fewest = &problem;
  return fewest;
}

// Of one problem, the interval is that of the median.
std::optional<Interval> BestInterval(const Selection& selection, const std::vector<double>& bests,
                                     int64_t k) {
  if (selection.asked != 1) return MeanInterval(bests, kBootstrapSeed);
  std::vector<double> speedups;
  for (const Attempt& attempt : selection.problems[0].attempts) speedups.push_back(attempt.speedup);
  return BestOfKInterval(std::move(speedups), k);
}

AtK MeansAtK(const Selection& selection, const std::vector<double>& thresholds, int64_t k) {
  // An estimate a problem asked for: one without attempts, or without a name, has 0.
  const auto estimates = [&](auto estimate) {
    std::vector<double> values(static_cast<size_t>(selection.asked), 0.0);
    for (size_t i = 0; i < selection.problems.size(); ++i)
      if (!selection.problems[i].attempts.empty()) values[i] = estimate(selection.problems[i]);
    return values;
  };
  const auto mean = [&](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) /
           static_cast<double>(selection.asked);
  };
  const auto pass = [&](double p, bool certified) {
    return estimates([&](const ProblemAttempts& problem) {
      return PassAtK(static_cast<int64_t>(problem.attempts.size()),
                     CountAttempts(problem, p, certified), k);
    });
  };
  const std::vector<double> passes = pass(0, false);
  const std::vector<double> bests = estimates([&](const ProblemAttempts& problem) {
    std::vector<double> speedups;
    for (const Attempt& attempt : problem.attempts) speedups.push_back(attempt.speedup);
    return BestAtK(std::move(speedups), k);
  });
  AtK result;
  result.k = k;
  result.pass = mean(passes);
  result.pass_interval = MeanInterval(passes, kBootstrapSeed);
  result.best_speedup = mean(bests);
  result.best_interval = BestInterval(selection, bests, k);
  for (const double p : thresholds)
    result.fast_p.push_back({p, mean(pass(p, false)), mean(pass(p, true))});
  return result;
}

void AddLearning(const Selection& selection, Score* score) {
  if (!score->several_attempts()) return;
  std::vector<AttemptCount> counts;
  std::vector<std::vector<Attempt>> attempts;
  for (const ProblemAttempts& problem : selection.problems) {
    counts.push_back(
        {static_cast<int64_t>(problem.attempts.size()), CountAttempts(problem, 0, false)});
    attempts.push_back(problem.attempts);
  }
  score->coverage = CoverageOf(counts);
  score->learning = LearningCurve(attempts, selection.asked);
}

void AddAtK(const Selection& selection, const ScoreRules& rules, Score* score) {
  const ProblemAttempts* fewest = FewestAttempts(selection);
  if (fewest == nullptr) return;
  const auto attempts = static_cast<int64_t>(fewest->attempts.size());
  std::vector<int64_t> draws = rules.draws;
  if (draws.empty() && score->several_attempts()) draws = {1, 5, 10};
  for (const int64_t k : draws) {
    if (k <= attempts)
      score->at_k.push_back(MeansAtK(selection, rules.thresholds, k));
    else
      score->at_k_left_out.push_back({k, fewest->problem.name, attempts});
  }
}

void Count(const ProblemScore& problem, FunnelRow* row) {
  for (const Stage stage : kAllStages)
    if (stage <= problem.stage) ++row->reached[static_cast<size_t>(stage)];
}

void AddFunnels(Score* score) {
  std::map<int, FunnelRow> levels;
  std::map<std::string, FunnelRow> mechanisms;
  bool any_mechanism = false;
  for (const ProblemScore& problem : score->problems) {
    Count(problem, &score->funnel);
    Count(problem, &levels[problem.problem.level]);
    Count(problem, &mechanisms[problem.problem.mechanism]);
    any_mechanism = any_mechanism || !problem.problem.mechanism.empty();
  }
  score->funnel.reached[static_cast<size_t>(Stage::kAsked)] = score->asked;
  for (auto& [level, row] : levels) {
    row.level = level;
    score->by_level.push_back(row);
  }
  if (!any_mechanism) return;
  for (auto& [mechanism, row] : mechanisms) {
    row.mechanism = mechanism;
    score->by_mechanism.push_back(row);
  }
}

Apart ApartOf(const Selection& selection, const std::vector<ProblemScore>& problems) {
  Apart apart;
  for (const ProblemAttempts& problem : selection.problems) {
    for (const Attempt& attempt : problem.attempts) {
      apart.prepared += attempt.prepares_weights ? 1 : 0;
      apart.right_on_ordinary += attempt.right_on_ordinary ? 1 : 0;
      apart.differ_on_special += attempt.differs_on_special ? 1 : 0;
    }
  }
  for (const ProblemScore& problem : problems) {
    if (!problem.only_prepared()) continue;
    ++apart.prepared_problems;
    if (problem.speedup <= 0) ++apart.prepared_untimed;
  }
  return apart;
}

// By mechanism where any is known, else by level where there are several. Groups without attempts
// are left out.
Fingerprint FingerprintOf(const Selection& selection, const Score& score) {
  Fingerprint table;
  table.by = !score.by_mechanism.empty() ? "mechanism" : score.by_level.size() > 1 ? "level" : "";
  const bool by_mechanism = table.by == "mechanism";
  if (!table.by.empty())
    for (const FunnelRow& row : by_mechanism ? score.by_mechanism : score.by_level)
      if (row.at(Stage::kJudged) > 0)
        table.groups.push_back(by_mechanism ? MechanismLabel(row.mechanism)
                                            : LevelLabel(row.level));
  std::map<std::pair<Outcome, std::string>, FingerprintRow> rows;
  for (const ProblemAttempts& problem : selection.problems) {
    const std::string group = by_mechanism ? MechanismLabel(problem.problem.mechanism)
                                           : LevelLabel(problem.problem.level);
    const auto place = static_cast<size_t>(
        std::find(table.groups.begin(), table.groups.end(), group) - table.groups.begin());
    for (const Attempt& attempt : problem.attempts) {
      FingerprintRow& row = rows[{attempt.outcome, attempt.kind}];
      row.outcome = attempt.outcome;
      row.kind = attempt.kind;
      row.by_group.resize(table.groups.size());
      ++row.count;
      if (place < table.groups.size()) ++row.by_group[place];
    }
  }
  for (auto& [key, row] : rows) table.rows.push_back(std::move(row));
  SortRows(&table.rows);
  return table;
}

Curve CurveOf(const std::vector<ProblemScore>& problems, double ProblemScore::*speedup) {
  std::vector<double> ratios;
  for (const ProblemScore& problem : problems)
    if (problem.*speedup > 0) ratios.push_back(problem.*speedup);
  std::sort(ratios.begin(), ratios.end());
  auto left = static_cast<int64_t>(ratios.size());
  Curve curve{{0, left}};
  for (const double ratio : ratios) {
    --left;
    if (curve.back().p == ratio)
      curve.back().count = left;  // equal ratios are one step
    else
      curve.push_back({ratio, left});
  }
  return curve;
}

}  // namespace

std::string LevelLabel(int level) {
  return level == 0 ? "no level" : "level " + std::to_string(level);
}

std::string MechanismLabel(const std::string& mechanism) {
  return mechanism.empty() ? "no mechanism" : mechanism;
}

Share ShareOf(int64_t count, int64_t asked) {
  ASSAY_CHECK(0 <= count && count <= asked);
  Share share{count, asked};
  if (asked == 0) return share;
  const auto n = static_cast<double>(asked);
  const double z2 = kNormalQuantile975 * kNormalQuantile975;
  const double center = (share.value() + z2 / (2 * n)) / (1 + z2 / n);
  const double half = kNormalQuantile975 / (1 + z2 / n) *
                      std::sqrt(share.value() * (1 - share.value()) / n + z2 / (4 * n * n));
  // Rounding must not move the ends off the shares that they are exactly.
  share.low = count == 0 ? 0 : std::max(0.0, center - half);
  share.high = count == asked ? 1 : std::min(1.0, center + half);
  return share;
}

int64_t CountAt(const Curve& curve, double p) {
  const auto next = std::upper_bound(curve.begin(), curve.end(), p,
                                     [](double at, const CurveStep& step) { return at < step.p; });
  return next == curve.begin() ? 0 : std::prev(next)->count;
}

std::vector<std::string> Score::NotJudged() const {
  std::vector<std::string> names;
  for (const ProblemScore& problem : problems)
    if (problem.attempts == 0) names.push_back(problem.problem.name);
  return names;
}

Score ComputeScore(const Selection& selection, const ScoreRules& rules) {
  ASSAY_CHECK(selection.asked >= static_cast<int64_t>(selection.problems.size()));
  Score score;
  score.asked = selection.asked;
  score.baseline = selection.baseline;
  score.machines = selection.machines;
  score.set_aside = selection.set_aside;
  score.from = selection.from;
  score.to = selection.to;
  for (const ProblemAttempts& problem : selection.problems) {
    score.problems.push_back(Summary(problem));
    score.attempts += score.problems.back().attempts;
    score.judged += score.problems.back().attempts > 0 ? 1 : 0;
  }
  score.correct = FastShare(selection, 0, false);
  for (const double p : rules.thresholds)
    score.fast_p.push_back({p, FastShare(selection, p, false), FastShare(selection, p, true)});
  AddMeans(&score);
  AddAtK(selection, rules, &score);
  AddLearning(selection, &score);
  score.repeats = selection.repeats;
  AddFunnels(&score);
  score.apart = ApartOf(selection, score.problems);
  score.fingerprint = FingerprintOf(selection, score);
  score.plain = CurveOf(score.problems, &ProblemScore::speedup);
  score.certified = CurveOf(score.problems, &ProblemScore::certified_speedup);
  return score;
}

}  // namespace assay
