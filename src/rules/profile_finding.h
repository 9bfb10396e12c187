// What counters say most likely limits a candidate: one finding about the kernel that takes the
// most cycles. Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// A unit of the GPU that the kernel keeps busy, and so bounds it; with what it does that it need
// not. At most four numbers; empty without a profile, and where no unit is busy.
std::string BusiestUnit(const Verdict& verdict);

// Where no unit is busy: what its warps wait for. Empty without a profile.
std::string WhatWarpsAwait(const Verdict& verdict);

}  // namespace assay
