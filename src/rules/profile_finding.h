// Names the most likely limit of a candidate from a profile's counters: one finding about the
// kernel that takes the most cycles. Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// Names the unit of the GPU that the kernel keeps busy and that so bounds it, with any avoidable
// work there. At most four numbers. Empty without a profile, or if no unit is busy.
std::string BusiestUnit(const Verdict& verdict);

// Names what the kernel's warps wait for, if no unit is busy. Empty without a profile.
std::string WhatWarpsAwait(const Verdict& verdict);

}  // namespace assay
