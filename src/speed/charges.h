// Charges the candidate's blocks of a pair for work that it may have done before the clock of a
// block, or left for after its end (rules/head_start.h). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "rules/gate2.h"
#include "speed/ledger.h"

namespace assay {

// Returns the charge of each of the candidate's blocks, in their order [ns]. `foreign_code`: code
// of the candidate's runs in its host.
std::vector<int64_t> ChargesNs(const PairBlocks& blocks, bool foreign_code);

// Adds the charges to the candidate's blocks and to the times of its calls. `rounds` has the times
// of the same blocks, each of `calls` calls.
void Charge(const std::vector<int64_t>& charges_ns, uint32_t calls, PairSamples* samples,
            std::vector<RoundTimes>* rounds);

}  // namespace assay
