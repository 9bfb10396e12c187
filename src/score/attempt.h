// One judged candidate as scores see it: how far it came, and how fast it is. Pure.
#pragma once

#include <array>
#include <string_view>

#include "model/verdict.h"

namespace assay {

// How far a candidate came; whoever reaches a stage has passed those before it.
enum class Stage {
  kAsked,    // the problem was asked for; nobody need have tried
  kJudged,   // there is a verdict
  kBuilt,    // it compiled and loaded
  kRan,      // it gave outputs to compare: no crash, no timeout, memory enough, no foul
  kCorrect,  // both gates found every output right
  kFaster,   // and its pairs certify more than once the baseline's speed
};
inline constexpr std::array kAllStages{Stage::kAsked, Stage::kJudged,  Stage::kBuilt,
                                       Stage::kRan,   Stage::kCorrect, Stage::kFaster};
std::string_view StageName(Stage stage);  // "asked", "judged"...

struct Attempt {
  Stage stage = Stage::kJudged;
  // Median ratio to the baseline; 0 where the candidate is not correct or was not measured.
  double speedup = 0;
  // The largest p that gate 2 decides `faster` against; 0: none.
  double certified_speedup = 0;

  bool correct() const { return stage >= Stage::kCorrect; }
};

// `baseline` names the one whose result counts; empty: the headline, which decides the outcome.
// Records older than `certified_speedup` certify the threshold they were judged against, where the
// outcome is `faster`.
Attempt AttemptOf(const Verdict& verdict, std::string_view baseline = {});

// Correct, and more than p times as fast; p of 0 asks for correctness alone. Strict: a ratio of
// exactly p does not qualify.
bool Qualifies(const Attempt& attempt, double p, bool certified);

}  // namespace assay
