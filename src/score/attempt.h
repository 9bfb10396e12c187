// A judged candidate as scores use it: the last stage that it reached, and its speed. Pure.
#pragma once

#include <array>
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
  // Median ratio to the baseline; 0 if the candidate is not correct or was not measured.
  double speedup = 0;
  // The largest p that gate 2 decides `faster` against; 0: none.
  double certified_speedup = 0;

  bool correct() const { return stage >= Stage::kCorrect; }
};

// `baseline` names the baseline whose result counts; empty: the headline, which decides the
// outcome. Records without `certified_speedup` certify the threshold they were judged against, if
// the outcome is `faster`.
Attempt AttemptOf(const Verdict& verdict, std::string_view baseline = {});

// Returns true if the attempt is correct and more than p times as fast; p = 0 asks for correctness
// alone. A ratio of exactly p does not qualify.
bool Qualifies(const Attempt& attempt, double p, bool certified);

}  // namespace assay
