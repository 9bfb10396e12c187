// Threads that work at the same time, each bound to one core, for measuring what the cores reach
// together.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace assay {

using Pieces = std::vector<std::function<void()>>;

// Starts one thread a core. Each calls make(index) to get ready (allocating and touching its own
// memory) and gets its pieces of work back, as many as the others. Piece after piece runs `repeats`
// times, all threads beginning together. Returns for each piece the shortest time in which all
// threads were done [s]. Blocks; pieces must not throw.
std::vector<double> ShortestSeconds(std::span<const int> cpus, int repeats,
                                    const std::function<Pieces(size_t index)>& make);

}  // namespace assay
