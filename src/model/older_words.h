// Reads codes out of the words of older verdicts, which have no codes. These words never change;
// nothing reads those of today. Pure.
#pragma once

#include <string_view>

#include "model/verdict.h"

namespace assay {

// Of Correctness::hint.
Mistake MistakeByOlderWords(std::string_view hint);
// Of the reason of a dropped draw: it was left out for the time that it would take.
bool ForTimeByOlderWords(std::string_view reason);
// Of BaselineResult::note: other processes took the cores.
bool DisturbedByOlderWords(std::string_view note);
// Of Machine::isolation.
bool WeakByOlderWords(std::string_view isolation);
// Of the verdict's message and outcome: kLongCalls, kBlindProblem or kNone.
Cause CauseByOlderWords(const Verdict& verdict);
// Of the message of a candidate that did not build; 0: it names no line.
int LineByOlderWords(const Verdict& verdict);

}  // namespace assay
