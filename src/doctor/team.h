// Runs threads at the same time, each bound to one core, to measure the cores together.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace assay {

using Pieces = std::vector<std::function<void()>>;

// Starts one thread a core. Each calls make(index), which allocates and touches the thread's own
// memory and returns its pieces of work; all threads have the same number. Runs piece after piece,
// each `repeats` times; all threads begin together. Returns for each piece the shortest time until
// all threads are done [s]. Blocks; pieces must not throw.
std::vector<double> ShortestSeconds(std::span<const int> cpus, int repeats,
                                    const std::function<Pieces(size_t index)>& make);

}  // namespace assay
