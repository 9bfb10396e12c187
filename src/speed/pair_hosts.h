// Starts and ends the hosts of a pair.
#pragma once

#include <optional>
#include <random>

#include "base/clock.h"
#include "speed/gate2_terms.h"
#include "speed/ledger.h"

namespace assay {

// Returns the opponent of a pair. Errors: trouble, the opponent's.
HostResult<Opponent> GetOpponent(const Sides& sides, int pair_index, SpentTime* spent);

// Starts the hosts of both sides, on the cores of this pair. `*candidate` is set whenever the
// candidate's host started, after an error, too. Errors: trouble, which says whose it is.
HostResult<Opponent> StartHosts(const Gate2Setup& setup, int pair_index, std::mt19937_64& random,
                                SpentTime* spent, std::optional<LiveHost>* candidate);

// Waits until nobody else uses the device; the budget does not count that. Errors: kInterrupted,
// kEnvironment.
HostResult<void> MeasureAlone(const Sides& sides, Deadline* budget);

// Returns true if the judge can read results where both hosts leave them.
bool MayReadResults(const Gate2Setup& setup, const LiveHost& opponent, const LiveHost& candidate);

// Cleans up after a pair: hands its candidate's host, if there is one, to those that end. `ran`: no
// trouble ended the pair.
void EndHosts(const Gate2Setup& setup, bool ran, std::optional<LiveHost> candidate);

// Waits for hosts that end, which would run beside a measurement.
void AwaitEnding(const Sides& sides, SpentTime* spent);

}  // namespace assay
