// The exit codes of every command (the table stands in README.md). Scripts rely on them: they never
// change meaning.
#pragma once

#include <span>

#include "base/result.h"
#include "model/verdict.h"

namespace assay {

enum ExitCode : int {
  kExitGood = 0,       // judge: every candidate is faster, or correct where that was asked
  kExitNotFaster = 1,  // correct, but not proven faster: slower or a tie
  kExitUsage = 2,      // the request is wrong
  kExitWrong = 3,
  kExitBuildFailed = 4,
  kExitDied = 5,  // crashed, timed out or ran out of memory
  kExitFoul = 6,
  kExitUnsettled = 7,    // too noisy to say
  kExitEnvironment = 8,  // this machine lacks something: never a verdict on the candidate
  kExitBudget = 9,       // a budget ended without a confirmed improvement, or with rungs left
  kExitBug = 70,         // a bug of Assay's own (base/check.cc)
  kExitInterrupted = 130,
};

int ExitCodeOf(Outcome outcome);
int ExitCodeOf(ErrorKind kind);

// Returns the gravest of several candidates' codes, in the order of README.md. An interrupt stands
// above all but a bug, and a bad request or a spent budget beside what the machine lacks, since all
// of them left candidates unjudged. A code that is none of these is a bug: 70. No codes at all: 0.
int CombineExitCodes(std::span<const int> codes);

}  // namespace assay
