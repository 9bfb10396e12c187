// Charges the candidate for time outside of the clock in which it could have worked: between waking
// and its start, since its inputs are there when it wakes; and, on a device, between its end and
// the judge's look at the outputs. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

// Wake times of two honest hosts of one form differ by at most this [ns].
inline constexpr int64_t kWakeDifferenceNs = 10'000;
// An honest block may occasionally take this much longer to wake than the opponent's second longest
// wake of the pair, and its look this much longer than the opponent's median [ns].
inline constexpr int64_t kWakeSpikeNs = 30'000, kLookSpikeNs = 30'000;

// Returns the median of one side's values; 0 without any. In all functions here `order` names the
// side of each block: 'c' the candidate, 'r' the reference.
double MedianOfSide(char side, std::string_view order, std::span<const int64_t> values_ns);

// Returns how long a block of the candidate may take to wake without a charge of its own [ns].
int64_t WakeFreeNs(std::string_view order, std::span<const int64_t> woken_ns);

// Returns the excess of the candidate's median over the opponent's in one pair [ns].
double MedianExcessNs(std::string_view order, std::span<const int64_t> times_ns);

// Return the time to add to each of the candidate's blocks of a pair, in their order [ns]: the
// `excess_ns` of the candidate, less kWakeDifferenceNs, or, if larger, the block's own excess
// beyond the spike above. So a candidate that works outside of the clock in a part of its blocks
// pays there. `woken_ns`: the time from waking to ready that is not charged yet; `look_ns`: the
// look's, whose excess is that of this pair.
std::vector<int64_t> WakeChargesNs(std::string_view order, std::span<const int64_t> woken_ns,
                                   double excess_ns);
std::vector<int64_t> LookChargesNs(std::string_view order, std::span<const int64_t> look_ns);

}  // namespace assay
