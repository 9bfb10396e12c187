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
// The look at an honest block's outputs may occasionally take this much longer than the opponent's
// median [ns].
inline constexpr int64_t kLookSpikeNs = 30'000;

// Returns the median of one side's values; 0 without any. In all functions here `order` names the
// side of each block: 'c' the candidate, 'r' the reference.
double MedianOfSide(char side, std::string_view order, std::span<const int64_t> values_ns);

// Returns the time to add to each of the candidate's blocks of a pair [ns]: its median wake time
// less the opponent's, less kWakeDifferenceNs; at least 0. `woken_ns`: the time from waking to
// ready that is not charged yet.
int64_t HeadStartNs(std::string_view order, std::span<const int64_t> woken_ns);

// Returns the time to add to each of the candidate's blocks of a pair, in their order [ns]: the
// excess of its looks by medians as above, or, if larger, the excess of the block's own look over
// the opponent's median plus kLookSpikeNs.
std::vector<int64_t> LookChargesNs(std::string_view order, std::span<const int64_t> look_ns);

}  // namespace assay
