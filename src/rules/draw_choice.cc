#include "rules/draw_choice.h"

#include <algorithm>

namespace assay {

using wire::DrawKind;

std::vector<size_t> DrawsLeftOut(std::span<const DrawKind> kinds, double draw_s, double budget_s) {
  constexpr DrawKind kOrder[] = {
      DrawKind::kSigns,         DrawKind::kPatch,       DrawKind::kLargeOffset,
      DrawKind::kTies,          DrawKind::kHugeScale,   DrawKind::kSpecialValues,
      DrawKind::kSmallIntegers, DrawKind::kWideRange,   DrawKind::kOutlier,
      DrawKind::kTinyScale,     DrawKind::kSignedZeros, DrawKind::kZeroOne,
      DrawKind::kOrdinary};
  std::vector<size_t> left_out;
  if (budget_s <= 0 || draw_s * static_cast<double>(kinds.size()) <= budget_s) return left_out;
  const auto fitting = std::max(kDrawsMin, static_cast<size_t>(budget_s / draw_s));
  size_t made = 1;
  for (const DrawKind kind : kOrder)
    for (size_t i = 1; i < kinds.size(); ++i)
      if (kinds[i] == kind && made++ >= fitting) left_out.push_back(i);
  std::sort(left_out.begin(), left_out.end());
  return left_out;
}

}  // namespace assay
