// A kernel's record in words, for cards: what a thread and a block take, how it is launched, what
// it consists of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/verdict.h"

namespace assay {

// Label and text of each line; those whose facts are not known are left out.
std::vector<std::pair<std::string, std::string>> KernelFacts(const KernelRecord& kernel);

// The same of what counters saw of it.
std::vector<std::pair<std::string, std::string>> ProfileFacts(const KernelProfile& kernel);

}  // namespace assay
