// Runs both sides in blocks that follow on one another: the time of calls once clocks have come
// down.
#pragma once

#include <optional>

#include "model/verdict.h"
#include "speed/gate_parts.h"

namespace assay {

// Runs both sides for terms.sustained_s each without a pause, in hosts of their own. Returns
// nullopt if a call of the candidate was wrong: the ledger's checks say how. Errors: trouble, which
// says whose it is.
HostResult<std::optional<SustainedRecord>> Sustain(const Gate2Setup& setup, GateParts& parts);

// Runs one side without a pause, on slots that are filled. Returns and errors as Sustain.
HostResult<std::optional<SustainedSide>> SustainSide(GateParts& parts, Side& side,
                                                     const FilledSlots& filled);

}  // namespace assay
