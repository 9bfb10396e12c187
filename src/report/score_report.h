// A score for people, in a terminal: the table of fast_p, its curve, the funnel, and what the
// numbers rest on.
#pragma once

#include <string>

#include "report/frame.h"
#include "score/score.h"

namespace assay {

// Lines that each end in a newline and fit style.width columns. Whatever names the verdicts hold,
// the text has no control characters besides those newlines and, with colour, SGR codes of its own.
std::string RenderScore(const Score& score, const CardStyle& style);

}  // namespace assay
