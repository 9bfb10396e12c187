// What most likely keeps a candidate for a GPU from its peak, of what its code says and, where they
// were asked for, of counters: one finding, since a focused handful of numbers helps more than a
// dump. Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// One sentence with the numbers that it rests on; empty where nothing stands out, and from 85% of
// the measured peak on where no counter says what bounds it. Reads `kernels` and, where they are
// there, `roofline`, `work` and `profile`.
std::string BottleneckOf(const Verdict& verdict, int multiprocessors);

}  // namespace assay
