#include "rules/unseen_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace assay {
namespace {

// Names each once: the same operator may be called often in a line.
std::string NamesOf(const OperatorCoverage& coverage, const char* separator) {
  std::vector<std::string> names;
  for (const UnseenOperator& one : coverage.unseen) {
    std::string name = one.line > 0 ? fmt::format("{} in line {}", one.name, one.line) : one.name;
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(names, separator));
}

}  // namespace

std::string CoverageText(const OperatorCoverage& coverage) {
  std::string text =
      fmt::format("the values see {} of {} operators", coverage.seen, coverage.operators);
  if (!coverage.unseen.empty()) text += "; not seen: " + NamesOf(coverage, ", ");
  if (coverage.not_tried > 0) text += fmt::format("; not tried: {}", coverage.not_tried);
  return text;
}

std::string UnseenExplains(const OperatorCoverage& coverage, double ci_low) {
  double share = 0;
  for (const UnseenOperator& one : coverage.unseen) share += one.time_share;
  share = std::min(share, 1.0);  // what several save may be the same
  if (coverage.unseen.empty() || (1 - share) * ci_low > 1) return {};
  return fmt::format(
      "the values do not show {}, {:.0f}% of the reference's time with what only that needs, and a "
      "kernel that leaves it out could be as fast; other values in get_inputs(), or a "
      "check(inputs, outputs), can show it",
      NamesOf(coverage, " and "), 100 * share);
}

}  // namespace assay
