// A search as a picture: each candidate by its speedup in the order of the judgements, the lines to
// their parents, and the best so far. Pure.
#pragma once

#include <string>

#include "web/run_pages.h"

namespace assay {

// Empty where no candidate was judged.
std::string RenderRunSvg(const RunView& view);

}  // namespace assay
