// A judged candidate as scores use it: the last stage that it reached, and its speed. Pure.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "model/verdict.h"

namespace assay {

// The last stage that a candidate reached; it has passed all stages before.
enum class Stage {
  kAsked,    // the problem was asked for, perhaps without an attempt
  kJudged,   // there is a verdict
  kBuilt,    // it compiled and loaded
  kRan,      // it gave outputs: no crash, timeout, lack of memory or foul
  kCorrect,  // both gates found every output right
  kFaster,   // its pairs certify a speedup over 1
};
inline constexpr std::array kAllStages{Stage::kAsked, Stage::kJudged,  Stage::kBuilt,
                                       Stage::kRan,   Stage::kCorrect, Stage::kFaster};
std::string_view StageName(Stage stage);  // "asked", "judged"...

struct Attempt {
  Stage stage = Stage::kJudged;
  Outcome outcome = Outcome::kUnsettled;
  std::string kind;     // KindOf() the outcome; empty: the outcome says all
  std::string message;  // for a person: why it is no better; may be empty
  // RightWithPreparedWeights(): plain scores count it as correct, certified ones never do.
  bool prepares_weights = false;
  bool right_on_ordinary = false;   // RightOnOrdinaryValues(): not correct all the same
  bool differs_on_special = false;  // correct; other results where inputs are NaN or infinite
  // Median ratio to the baseline, with its interval; 0 if the candidate is not correct or was not
  // measured.
  double speedup = 0;
  double ci_low = 0, ci_high = 0;
  double time_ns = 0;  // of the candidate's call; likewise
  // The largest p that gate 2 decides `faster` against; 0: none. At most the threshold where the
  // decision is another one.
  double certified_speedup = 0;

  bool correct() const { return stage >= Stage::kCorrect; }
};

// Returns true for a wrong candidate that a second look found right with weights that stay the same
// in all calls, so that they may be prepared once, as KernelBench allows.
bool RightWithPreparedWeights(const Verdict& verdict);
// Returns true for a wrong candidate that is right on ordinary values: unusual ones alone (huge,
// tiny, ties...) show the fault.
bool RightOnOrdinaryValues(const Verdict& verdict);

// `baseline` names the baseline whose result counts; empty: the headline, which decides the
// outcome. Records without `certified_speedup` certify the threshold they were judged against, if
// the outcome is `faster`.
Attempt AttemptOf(const Verdict& verdict, std::string_view baseline = {});

// Returns true if the attempt is correct and more than p times as fast; p = 0 asks for correctness
// alone. A ratio of exactly p does not qualify. Certified, weights that were prepared once do not
// either.
bool Qualifies(const Attempt& attempt, double p, bool certified);

}  // namespace assay
