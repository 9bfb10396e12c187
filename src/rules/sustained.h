// What calls take in a run without pauses, by its blocks.
#pragma once

#include <cstdint>
#include <vector>

namespace assay {

// One call's time [ns]: the median over the later half of the blocks, once clocks have come down.
// At least one block, of `calls` calls each.
double SustainedCallNs(const std::vector<int64_t>& block_ns, int calls);

}  // namespace assay
