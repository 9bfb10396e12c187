#include "model/audit.h"

#include <algorithm>

namespace assay {

std::string_view MutantResultName(MutantResult result) {
  switch (result) {
    case MutantResult::kKilled:
      return "killed";
    case MutantResult::kSurvived:
      return "survived";
    case MutantResult::kEquivalent:
      return "equivalent";
  }
  return "unknown";
}

std::string_view OperatorResultName(OperatorResult result) {
  switch (result) {
    case OperatorResult::kSeen:
      return "seen";
    case OperatorResult::kUnseen:
      return "unseen";
    case OperatorResult::kRedundant:
      return "redundant";
  }
  return "unknown";
}

int ProblemAudit::Count(OperatorResult result) const {
  return static_cast<int>(std::ranges::count(operators, result, &OperatorRecord::result));
}

int ProblemAudit::Count(MutantResult result) const {
  return static_cast<int>(
      std::count_if(mutants.begin(), mutants.end(),
                    [result](const MutantRecord& mutant) { return mutant.result == result; }));
}

const MutantRecord* ProblemAudit::Weakest() const {
  const MutantRecord* weakest = nullptr;
  for (const MutantRecord& mutant : mutants)
    if (mutant.result == MutantResult::kKilled &&
        (weakest == nullptr || mutant.margin < weakest->margin))
      weakest = &mutant;
  return weakest;
}

}  // namespace assay
