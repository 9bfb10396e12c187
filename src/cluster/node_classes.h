// Nodes that differ from their class: all workers on one model of a device should be equally fast.
// Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "queue/work_queue.h"

namespace assay {

struct OddNode {
  std::string worker;
  std::string why;  // "reads 61.2 GB/s, and the others of its class 118.0 GB/s"
};

// Returns workers that are not drained and have a rate that is lower than the median of the other
// nodes of their class by more than a fifth, or a noise floor over twice theirs. A class has at
// least three nodes with that measure.
std::vector<OddNode> OddNodes(std::span<const KnownWorker> workers);

}  // namespace assay
