// What is reached after each round of attempts. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "score/attempt.h"

namespace assay {

struct LearningPoint {
  int64_t round = 0;        // from 1
  double correct = 0;       // share of problems with a correct attempt so far
  double certified = 0;     // share of problems with an attempt certified over 1 so far
  double mean_speedup = 1;  // geometric mean of the best correct ratio so far, at least 1
};

// The i-th attempt at a problem belongs to round i. A problem with fewer attempts keeps what it
// has. `asked`: problems, at least problems.size(); others count as never attempted.
std::vector<LearningPoint> LearningCurve(const std::vector<std::vector<Attempt>>& problems,
                                         int64_t asked);

}  // namespace assay
