// What a side could have done outside of the clock: between being woken and its start, since its
// inputs lie there when it wakes; and on a device between its end and the judge's look. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace assay {

// Two honest hosts of one form take the same time to wake, but for this [ns].
inline constexpr int64_t kWakeDifferenceNs = 10'000;

// What to add to each of the candidate's blocks of a pair [ns]: how much longer its blocks took to
// wake, or to be looked at, than the opponent's, by medians, beyond what honest hosts differ by.
// `order` names the side of each block ('c' or 'r'), `woken_ns` its time from waking to ready as
// far as it is not charged already, or that of the look.
int64_t HeadStartNs(std::string_view order, std::span<const int64_t> woken_ns);

}  // namespace assay
