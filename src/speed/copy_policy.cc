#include "speed/copy_policy.h"

namespace assay {

wire::Results CopyPolicy::ResultsOf(bool is_candidate, bool looked_at) const {
  using wire::Results;
  // On a device no clock of the host's tells what its copying takes: it does without.
  if (SubtractsSettle(is_candidate))
    return on_device_ && !looked_at ? Results::kKept : Results::kIntoSlots;
  if (both_copy_ || candidate_copies_) return Results::kIntoSlots;
  const bool leaves = is_candidate ? forms_.candidate_leaves : forms_.opponent_leaves;
  return leaves ? Results::kLeft : Results::kIntoSlots;
}

void CopyPolicy::CopyFromNowOn(bool is_candidate) {
  (is_candidate ? candidate_copies_ : both_copy_) = true;
}

}  // namespace assay
