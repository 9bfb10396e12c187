// Names the most likely limit of a GPU candidate's speed, from its machine code and, where the
// profiler ran, from counters. One finding: a few numbers help more than a dump. Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// Returns one sentence with the numbers that it rests on. Empty where nothing stands out, and at
// 85% of the measured peak or more unless a counter names the bound. Reads the verdict's `kernels`
// and, if present, `roofline`, `work` and `profile`.
std::string BottleneckOf(const Verdict& verdict, int multiprocessors);

}  // namespace assay
