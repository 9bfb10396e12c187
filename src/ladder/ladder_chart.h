// A ladder as an SVG picture. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ladder/climb.h"

namespace assay {

// A bar a rung for the percentage of the library, with the judge's interval, a thin one for that of
// the peak, and a tick where the prediction stands. It follows the reader's choice of light or
// dark, and says in words what it shows. `page_id`: begins the ids in it, in a page whose own style
// has its classes; empty: it stands alone.
std::string RenderLadderSvg(const Ladder& ladder, const LadderSize& size,
                            const std::vector<RungResult>& results, std::string_view page_id = {});

}  // namespace assay
