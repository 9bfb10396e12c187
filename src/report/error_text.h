// The errors of a candidate's outputs, for people.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// Returns "at most 0.44 of what is allowed; 1.2e-07 on ordinary values", for example; or that the
// problem's own check judged, which knows no such figures.
std::string ErrorText(const Correctness& correctness);

}  // namespace assay
