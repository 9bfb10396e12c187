// Finds the elements of an unusual draw that rounding alone moves (rules/moved_elements.h), by a
// second reference. Runs only after a candidate, or an opponent, fails on the draw.
#pragma once

#include <cstddef>
#include <span>

#include "correctness/call_check.h"
#include "correctness/draw_set.h"
#include "values/oracle.h"

namespace assay {

struct RoundingSetup {
  const OracleOptions& options;  // of a second reference like `oracle`, at its size
  Oracle& oracle;
  const CompareRule& rule;
  std::span<const ReferenceError> errors;
};

// Checks a failed call again without the elements that rounding moves. `check` is the result of a
// call that gave `written` for the draw in `master`. Starts a second reference, which takes
// seconds, unless the check passed, rounding cannot explain the failure, or that master's moved
// elements are known; then returns `check`. Trouble of that reference is in the check
// (`could_not_ask`). Errors: kInterrupted.
HostResult<CallCheck> CheckForRounding(const RoundingSetup& setup, const Draw& draw,
                                       uint32_t master, const std::byte* written,
                                       const HintContext& context, CallCheck check);

}  // namespace assay
