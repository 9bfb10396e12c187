// A score as one HTML page that stands alone: no scripts, nothing from elsewhere, light or dark as
// the reader's browser asks. Pure.
#pragma once

#include <string>
#include <string_view>

#include "score/score.h"

namespace assay {

// `subject`: where the verdicts come from, such as the run's folder. Whatever names and messages
// the verdicts hold, they are text in the page.
std::string RenderScorePage(const Score& score, const std::string& subject);

// Returns true for the text of a page that RenderScorePage made.
bool IsScorePage(std::string_view text);

}  // namespace assay
