// Selects the verdicts for one table: a candidate counts once, and sizes, machines and baselines
// are not mixed unnoticed. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"
#include "score/attempt.h"
#include "score/repeats.h"

namespace assay {

struct AskedProblem {
  std::string name;
  int level = 0;          // 0: none
  std::string mechanism;  // empty: not known
};

struct SelectionRules {
  std::vector<AskedProblem> asked;  // a suite's; empty: the problems of the verdicts
  int64_t asked_count = 0;          // how many, if no names are known; 0: as above
  std::string baseline;             // the one that counts; empty: each verdict's headline
  bool any_machine = false;         // verdicts of several machines may stand together
  bool any_size = false;            // so may several sizes or versions of one problem
};

struct ProblemAttempts {
  AskedProblem problem;
  std::vector<Attempt> attempts;  // one a candidate, in order of time; empty: none was judged
};

struct MachineCount {
  std::string cpu;
  int cores = 0;
  int threads = 0;
  std::string pytorch;  // another version is another baseline
  int64_t verdicts = 0;
};

// Verdicts that were read but do not count, by reason.
struct SetAside {
  int64_t judged_again = 0;  // an older verdict on a candidate, or the same verdict read twice
  int64_t not_asked = 0;     // the problem is not asked for
  std::vector<std::string> problems_not_asked;  // in alphabetical order
  int64_t against = 0;  // measured against another candidate, not a reference
};

struct Selection {
  std::vector<ProblemAttempts> problems;  // all with known names, in the suite's order
  int64_t asked = 0;                      // at least problems.size()
  std::string baseline;                   // empty if nothing was measured
  std::vector<MachineCount> machines;     // most verdicts first
  std::string from, to;                   // the first and the last verdict's time: ISO 8601, UTC
  SetAside set_aside;
  Repeats repeats;  // among all that were read
};

// Errors (kUsage): several rules of correctness, several machines (processor, cores or threads),
// several sizes of a problem, problems with gradients and without, several headline baselines, a
// baseline that some verdict lacks, more problems judged than asked for, no verdict left. The
// message names what is mixed, and the option that allows it if there is one.
Result<Selection> SelectVerdicts(const std::vector<Verdict>& verdicts, const SelectionRules& rules);

}  // namespace assay
