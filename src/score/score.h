// Scores of a set of judgements; the unit is the problem. docs/score.md has every formula. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "score/coverage.h"
#include "score/fingerprint.h"
#include "score/intervals.h"
#include "score/learning.h"
#include "score/selection.h"

namespace assay {

struct ScoreRules {
  std::vector<double> thresholds{0,   0.5, 0.8, 1,
                                 1.5, 2,   4};  // p of fast_p, ascending, not negative
  // k of pass@k, ascending, from 1 on; empty: 1, 5 and 10 if a problem has several attempts.
  std::vector<int64_t> draws;
};

// The number of problems that qualify, of those asked for, with Wilson's 95% interval of the share.
struct Share {
  int64_t count = 0;
  int64_t asked = 0;
  double low = 0, high = 1;

  double value() const {
    return asked > 0 ? static_cast<double>(count) / static_cast<double>(asked) : 0;
  }
};
// Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22 (1927):
// the shares p with |count / asked - p| <= 1.96 sqrt(p (1 - p) / asked). Needs count <= asked.
Share ShareOf(int64_t count, int64_t asked);

// A problem counts if any of its attempts qualifies.
struct FastPRow {
  double p = 0;
  Share plain, certified;
};

// Means over all problems asked for; one without attempts counts 0.
struct FastPAtK {
  double p = 0;
  double plain = 0, certified = 0;
};
struct AtK {
  int64_t k = 1;
  double pass = 0;                                       // at least one of k attempts is correct
  double best_speedup = 0;                               // of k attempts; an incorrect one counts 0
  std::optional<Interval> pass_interval, best_interval;  // 95%, over problems; nullopt: too few
  std::vector<FastPAtK> fast_p;
};
// A k without an unbiased estimate: this problem has attempts, but fewer than k.
struct AtKLeftOut {
  int64_t k = 1;
  std::string problem;
  int64_t attempts = 0;
};

// Problems by the furthest stage that any of their attempts reached, in the order of kAllStages.
struct FunnelRow {
  std::string mechanism;  // of rows by mechanism; empty: unknown
  int level = 0;          // of rows by level; 0: none
  std::array<int64_t, kAllStages.size()> reached{};

  int64_t at(Stage stage) const { return reached[static_cast<size_t>(stage)]; }
};

// "level 1", "no level"; "fusion", "no mechanism".
std::string LevelLabel(int level);
std::string MechanismLabel(const std::string& mechanism);

// For every threshold t from p (inclusive) to the next step, `count` problems are more than t times
// as fast.
struct CurveStep {
  double p = 0;
  int64_t count = 0;
};
using Curve = std::vector<CurveStep>;  // begins at p = 0, ends at count 0; p ascends
int64_t CountAt(const Curve& curve, double p);

struct ProblemScore {
  AskedProblem problem;
  int64_t attempts = 0;
  int64_t correct = 0;   // correct attempts
  int64_t prepared = 0;  // of these, right only with weights prepared once
  Stage stage = Stage::kAsked;
  double speedup = 0;            // the best of the correct attempts; 0: none was measured
  double certified_speedup = 0;  // likewise
  // The attempt with the best speed, else the one that came farthest. Without attempts it says
  // nothing.
  Attempt best;

  bool only_prepared() const { return correct > 0 && correct == prepared; }
};

// Kinds of attempts that scores show apart.
struct Apart {
  int64_t prepared = 0;           // right only with weights prepared once
  int64_t prepared_problems = 0;  // those that count as correct for such attempts alone
  int64_t prepared_untimed = 0;   // of these problems, without any speed
  int64_t right_on_ordinary = 0;  // not correct: wrong on unusual values alone
  int64_t differ_on_special = 0;  // correct; other results where inputs are NaN or infinite
};

struct Score {
  int64_t asked = 0;     // problems
  int64_t judged = 0;    // problems with a verdict
  int64_t attempts = 0;  // candidates that count
  std::string baseline;
  std::vector<MachineCount> machines;
  SetAside set_aside;
  std::string from, to;  // as in Selection

  Share correct;  // plain: with weights prepared once, too
  std::vector<FastPRow> fast_p;
  // Geometric means of the problems' best speedups. `clamped` is over all problems asked for; one
  // without a correct, faster attempt counts 1, as the reference stays in use. 0: no problem.
  double mean_correct = 0;
  int64_t mean_correct_problems = 0;
  double mean_clamped = 0;
  std::vector<AtK> at_k;
  std::vector<AtKLeftOut> at_k_left_out;
  std::optional<Coverage> coverage;     // nullopt: too few problems or attempts
  std::vector<LearningPoint> learning;  // a round an attempt, in order of time
  Repeats repeats;                      // candidates that were judged again
  FunnelRow funnel;                     // over all asked for
  std::vector<FunnelRow> by_level;      // over those known by name
  std::vector<FunnelRow> by_mechanism;  // likewise; empty where no mechanism is known
  Curve plain, certified;
  Apart apart;
  Fingerprint fingerprint;  // of attempts
  std::vector<ProblemScore> problems;

  std::vector<std::string> NotJudged() const;  // known names
  bool several_attempts() const { return attempts > judged; }
};

Score ComputeScore(const Selection& selection, const ScoreRules& rules);

}  // namespace assay
