// Threads that work at the same time, each bound to one core, for measuring what the cores reach
// together.
#pragma once

#include <functional>
#include <span>

namespace assay {

// Starts one thread a core. Each calls make(index) to get ready (allocating and touching its own
// memory) and gets its piece of work back; the pieces then run `repeats` times, all beginning
// together. Returns the shortest time in which all pieces were done [s]. Blocks; pieces must not
// throw.
double ShortestSeconds(std::span<const int> cpus, int repeats,
                       const std::function<std::function<void()>(size_t index)>& make);

}  // namespace assay
