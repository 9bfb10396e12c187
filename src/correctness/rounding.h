// What rounding alone moves in an unusual draw (rules/moved_elements.h), as a second reference
// tells: asked once a candidate, or an opponent, is wrong there.
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

// `check` is of a call that gave `written` for the draw in `master`. Where it failed, and rounding
// may be all there is to it, and nobody has asked since that master was filled, a second reference
// is started, which takes seconds; the call is then looked at again. Errors: kInterrupted. Trouble
// of that reference is in the check (`could_not_ask`).
HostResult<CallCheck> CheckForRounding(const RoundingSetup& setup, const Draw& draw,
                                       uint32_t master, const std::byte* written,
                                       const HintContext& context, CallCheck check);

}  // namespace assay
