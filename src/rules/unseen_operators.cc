#include "rules/unseen_operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace assay {
namespace {

// Names each once: the same operator may be called often in a line.
std::string NamesOf(const std::vector<const UnseenOperator*>& operators, const char* separator) {
  std::vector<std::string> names;
  for (const UnseenOperator* one : operators) {
    std::string name =
        one->line > 0 ? fmt::format("{} in line {}", one->name, one->line) : one->name;
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return fmt::format("{}", fmt::join(names, separator));
}

struct Holes {
  std::vector<const UnseenOperator*> never, on_unusual;
};

Holes HolesOf(const OperatorCoverage& coverage) {
  Holes holes;
  for (const UnseenOperator& one : coverage.unseen)
    (one.only_on.empty() ? holes.never : holes.on_unusual).push_back(&one);
  return holes;
}

}  // namespace

std::string CoverageText(const OperatorCoverage& coverage) {
  std::string text =
      fmt::format("the values see {} of {} operators", coverage.seen, coverage.operators);
  const Holes holes = HolesOf(coverage);
  if (!holes.never.empty()) text += "; not seen: " + NamesOf(holes.never, ", ");
  if (!holes.on_unusual.empty())
    text += "; on unusual values alone: " + NamesOf(holes.on_unusual, ", ");
  if (coverage.not_tried > 0) text += fmt::format("; not tried: {}", coverage.not_tried);
  return text;
}

std::string UnseenExplains(const OperatorCoverage& coverage, double ci_low) {
  // Several may save the same: those that unusual draws show often stand in one chain.
  double never = 0, on_unusual = 0;
  std::map<std::pair<std::string, int>, double> by_line;
  for (const UnseenOperator& one : coverage.unseen)
    if (one.only_on.empty())
      never += one.time_share;
    else
      on_unusual = std::max(on_unusual, by_line[{one.name, one.line}] += one.time_share);
  const double share = std::min(never + on_unusual, 1.0);
  if (coverage.unseen.empty() || (1 - share) * ci_low > 1) return {};
  const Holes holes = HolesOf(coverage);
  std::vector<std::string> parts;
  if (!holes.never.empty()) parts.push_back("do not show " + NamesOf(holes.never, " and "));
  if (!holes.on_unusual.empty())
    parts.push_back("show " + NamesOf(holes.on_unusual, " and ") +
                    " by draws alone that a glance at a few values tells");
  return fmt::format(
      "the values {}, {:.0f}% of the reference's time with what only that needs, and a kernel that "
      "leaves it out could be as fast; other values in get_inputs(), or a check(inputs, outputs), "
      "can show it",
      fmt::join(parts, ", and "), 100 * share);
}

}  // namespace assay
