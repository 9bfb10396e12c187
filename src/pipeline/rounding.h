// Whether rounding alone explains that a candidate is wrong in a few rows of an unusual draw
// (judge/moved_rows.h): a second reference computes the truth of nudged inputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pipeline/gate1_run.h"
#include "pipeline/oracle.h"

namespace assay {

// `written`: what the candidate gave for the draw in `master`, and failed with. Starts a reference
// of its own, which takes seconds, where rounding may explain each wrong element at all; `options`
// are those of `known`, the problem being the one at its size. True: known->moved(master) does
// explain it now. Errors: that reference's; kInterrupted.
HostResult<bool> LookForRounding(OracleOptions options, const CompareRule& rule, const Draw& draw,
                                 uint32_t master, const std::byte* written, Oracle* known);

}  // namespace assay
