// One plausible verdict of each outcome, for tests and for the pictures in the documents; never
// linked into assay.
#pragma once

#include <vector>

#include "model/verdict.h"

namespace assay {

Verdict SampleVerdict(Outcome outcome);
std::vector<Verdict> SampleVerdicts();  // all ten, in the order of the enum

}  // namespace assay
