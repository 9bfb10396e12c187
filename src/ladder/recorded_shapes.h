// The arguments of a ladder's problem, from its recorded rows: neither PyTorch nor memory for them
// is needed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ladder/ladder.h"
#include "model/problem.h"

namespace assay {

// Reads a verdict's signature: lines as DescribeArgument writes them. nullopt: a line is none, or
// not a tensor's.
std::optional<ProblemDescription> DescriptionOf(const std::vector<std::string>& signature);

// Returns the arguments at a size, from the newest row of a rung. nullopt: no such row.
std::optional<ProblemDescription> RecordedDescription(const Ladder& ladder, const LadderSize& size);

}  // namespace assay
