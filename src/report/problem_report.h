// Problems for people: the list of a suite, and one problem with its bytes, operations, bound and
// hot spots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/inspection.h"
#include "model/verdict.h"
#include "problem/suite.h"
#include "report/frame.h"

namespace assay {

std::string RenderProblemList(const std::vector<Suite>& suites, const CardStyle& style);

// One operator of the reference, from both looks at it.
struct OperatorLine {
  std::string name;
  double calls = 0;
  std::optional<double> operations, bytes;  // nothing where only the profiler saw it
  std::optional<double> time_share;         // of the operators' time; nothing without a profile
  // The gain of the whole forward if this operator took no time (Amdahl): 1 / (1 - share).
  std::optional<double> headroom;
};
// Longest first, or by bytes where there is no profile. What takes under half a percent of the time
// and was not counted is left out.
std::vector<OperatorLine> JoinOperators(const WorkAccount& account,
                                        const std::optional<Profile>& profile);

struct ProblemCard {
  ProblemRequest request;
  std::string mechanism, lesson;
  const Inspection& inspection;
  Work work;
  std::optional<Roofline> bound;  // nothing without ceilings
  int threads = 1;
  std::optional<OperatorCoverage> coverage = {};  // nothing before a judgement
};
std::string RenderProblem(const ProblemCard& card, const CardStyle& style);

}  // namespace assay
