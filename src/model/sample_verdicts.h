// One plausible verdict of each outcome, for tests and for the pictures in the documents; never
// linked into assay.
#pragma once

#include <vector>

#include "model/verdict.h"

namespace assay {

Verdict SampleVerdict(Outcome outcome);
Verdict SampleGpuVerdict();             // faster, of a device candidate with two kernels
std::vector<Verdict> SampleVerdicts();  // one an outcome, in the order of the enum; then the GPU's

}  // namespace assay
