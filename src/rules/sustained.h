// The time of calls in a run without pauses. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

// Returns one call's time [ns]: the median over the later half of the blocks, when clocks have come
// down. Needs at least one block; each has `calls` calls.
double SustainedCallNs(const std::vector<int64_t>& block_ns, int calls);

}  // namespace assay
