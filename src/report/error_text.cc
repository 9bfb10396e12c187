#include "report/error_text.h"

#include <fmt/format.h>

#include <cmath>

namespace assay {

std::string ErrorText(const Correctness& correctness) {
  if (correctness.tolerance == kByOwnCheck)
    return "judged by the problem's own check, not by a comparison with the reference";
  const double ratio = correctness.error_ratio;
  std::string text = "beyond any bound";
  if (ratio <= 1)
    text = fmt::format("at most {:.2f} of what is allowed", ratio);
  else if (std::isfinite(ratio) && ratio < 1e6)
    text = fmt::format("{:.{}f} times what is allowed", ratio, ratio < 10 ? 2 : 0);
  else if (std::isfinite(ratio))
    text = fmt::format("{:.1e} times what is allowed", ratio);
  if (std::isfinite(correctness.max_abs_error))
    text += correctness.passed
                ? fmt::format("; {:.2g} on ordinary values", correctness.max_abs_error)
                : fmt::format("; the largest is {:.2g}", correctness.max_abs_error);
  return text;
}

}  // namespace assay
