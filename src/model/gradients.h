// How a problem with its gradients (--grad) is told from others: by its name and its inputs.
#pragma once

#include "model/verdict.h"

namespace assay {

// The end of the name of a problem with gradients.
inline constexpr const char* kGradientsSuffix = "_gradients";
// The beginning of the names of inputs that are gradients of results: gradient_1.
inline constexpr const char* kGradientInput = "gradient_";

bool HasGradients(const ProblemRecord& problem);

}  // namespace assay
