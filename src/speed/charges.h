// Charges the candidate's blocks of a pair for work that it may have done before the clock of a
// block, or left for after its end (rules/head_start.h). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rules/gate2.h"
#include "speed/ledger.h"

namespace assay {

// Returns how much longer the candidate's blocks of these pairs take to wake: the median of the
// pairs' excesses [ns]. One pair has few blocks, and charges for what chance alone makes of them
// would add up; a candidate that wins by working before the clock does so in most pairs.
// `earlier_ns`: the excess of each earlier pair.
double WakeExcessNs(const PairBlocks& blocks, std::vector<double> earlier_ns);

// Returns the charge of each of the candidate's blocks, in their order [ns]. `wake_excess_ns`: of
// the pairs so far; nullopt: no code of the candidate's runs in its host.
std::vector<int64_t> ChargesNs(const PairBlocks& blocks, std::optional<double> wake_excess_ns);

// Adds the charges to the candidate's blocks and to the times of its calls. `rounds` has the times
// of the same blocks, each of `calls` calls.
void Charge(const std::vector<int64_t>& charges_ns, uint32_t calls, PairSamples* samples,
            std::vector<RoundTimes>* rounds);

}  // namespace assay
