// The result of a short run of a candidate's calls, in words. Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// Reads a probe of its calls: a line for each thing that was looked at, with what it means.
std::string ProbeText(const Verdict& verdict);

}  // namespace assay
