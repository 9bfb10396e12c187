// A run without pauses in words, for cards: what a call takes once clocks have come down.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/verdict.h"

namespace assay {

// Label and text of each line: one a side, beside its quickest block and the clock in short ones,
// and how the sides compare. Empty where the verdict has no such run.
std::vector<std::pair<std::string, std::string>> SustainedFacts(const Verdict& verdict);

}  // namespace assay
