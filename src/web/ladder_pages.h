// Ladders: their list, and one of them with its raw results. Pure.
#pragma once

#include <string>
#include <vector>

#include "ladder/climb.h"
#include "web/layout.h"

namespace assay {

struct LadderView {
  Ladder ladder;
  LadderSize size;
  std::vector<RungResult> results;  // in the order of the rungs
};

// "softmax-ladder" of a folder's ladder.toml, "softmax-ladder.cpu" of its ladder-cpu.toml.
std::string LadderPageName(const Ladder& ladder);

std::string RenderLaddersPage(const std::vector<LadderView>& ladders, PageFrame frame);
// All sizes of one ladder, the first one first.
std::string RenderLadderPage(const std::vector<LadderView>& sizes, PageFrame frame);

}  // namespace assay
