#include "model/gradients.h"

#include <algorithm>

namespace assay {

bool HasGradients(const ProblemRecord& problem) {
  const std::string input = std::string("input ") + kGradientInput;
  return problem.name.ends_with(kGradientsSuffix) &&
         std::ranges::any_of(problem.signature,
                             [&](const std::string& line) { return line.starts_with(input); });
}

}  // namespace assay
