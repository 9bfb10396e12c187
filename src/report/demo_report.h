// The texts of the demonstrations.
#pragma once

#include <string>
#include <vector>

#include "model/inspection.h"
#include "model/verdict.h"
#include "report/frame.h"

namespace assay {

// A naive kernel, the library and the machine's peak, in milliseconds and percent. The verdict has
// a speed and a roofline.
std::string RenderGap(const Verdict& verdict, const CardStyle& style);

std::string RenderFirstCalls(const FirstCalls& calls, const CardStyle& style);

// Softmax over tiles, step by step, beside the ordinary way.
std::string RenderOnlineSoftmax(const std::vector<std::vector<double>>& tiles,
                                const CardStyle& style);

}  // namespace assay
