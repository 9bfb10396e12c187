// A score for people, in a terminal: the table of fast_p, its curve, the funnel, and what the
// numbers rest on.
#pragma once

#include <string>
#include <vector>

#include "report/frame.h"
#include "score/score.h"

namespace assay {

// A sentence for each kind of attempt that is shown apart: weights prepared once, wrong on unusual
// values alone, other results where inputs are NaN or infinite.
std::vector<std::string> ApartSentences(const Score& score);
// "wrong: precision", "foul: late-write", "faster".
std::string FingerprintLabel(const FingerprintRow& row);

// Lines that each end in a newline and fit style.width columns. Whatever names the verdicts hold,
// the text has no control characters besides those newlines and, with colour, SGR codes of its own.
std::string RenderScore(const Score& score, const CardStyle& style);

}  // namespace assay
