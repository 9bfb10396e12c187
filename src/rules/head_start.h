// What a side could have done outside of the clock: between being woken and its start, since its
// inputs lie there when it wakes; and on a device between its end and the judge's look. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace assay {

// Two honest hosts of one form take the same time to wake, but for this [ns].
inline constexpr int64_t kWakeDifferenceNs = 10'000;
// An honest block's look at outputs may take this much longer than the opponent's median, now and
// then [ns].
inline constexpr int64_t kLookSpikeNs = 30'000;

// The median of one side's values; 0 without any. In all of these `order` names the side of each
// block ('c' or 'r').
double MedianOfSide(char side, std::string_view order, std::span<const int64_t> values_ns);

// What to add to each of the candidate's blocks of a pair [ns]: how much longer its blocks took to
// wake than the opponent's, by medians, beyond what honest hosts differ by. `woken_ns`: the time
// from waking to ready as far as it is not charged already.
int64_t HeadStartNs(std::string_view order, std::span<const int64_t> woken_ns);

// What to add to each of the candidate's blocks of a pair, in their order [ns]: how much longer
// looks at its outputs took, by medians as above; and where a single one took longer than the
// opponent's by over kLookSpikeNs, what it took more.
std::vector<int64_t> LookChargesNs(std::string_view order, std::span<const int64_t> look_ns);

}  // namespace assay
