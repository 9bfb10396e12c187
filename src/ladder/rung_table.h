// A ladder for people at a terminal: a table that grows as rungs are judged, and bars once they
// are. Pure.
#pragma once

#include <string>
#include <vector>

#include "ladder/climb.h"
#include "report/frame.h"

namespace assay {

class RungTable {
 public:
  RungTable(const Ladder& ladder, const std::vector<Rung>& rungs, CardStyle style);

  // The ladder's title, the size, and the heads of the columns.
  std::string Head(const LadderSize& size, const std::string& judge) const;
  // The rung's figures; below them its idea, and what limits it or what is wrong with it.
  std::string Row(const RungResult& result) const;

 private:
  std::string Below(const std::string& text, Tone tone) const;

  const Ladder& ladder_;
  CardStyle style_;
  int name_width_ = 4;
};

// Bars of the percentages of library and peak, with a mark where the prediction stands. Empty where
// no rung was timed.
std::string RenderRungBars(const Ladder& ladder, const std::vector<RungResult>& results,
                           const CardStyle& style);

}  // namespace assay
