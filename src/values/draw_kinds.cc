#include "values/draw_kinds.h"

#include <fmt/format.h>

#include <array>

namespace assay {

using wire::DrawKind;

namespace {

constexpr std::array<std::string_view, wire::kDrawKindCount> kDrawNames = {
    "ordinary",       "large-offset", "wide-range",     "tiny-scale", "huge-scale",
    "signed-zeros",   "ties",         "small-integers", "zero-one",   "outlier",
    "special-values", "signs",        "patch"};

}  // namespace

std::string_view DrawKindName(DrawKind kind) {
  const auto index = static_cast<size_t>(kind);
  return index < kDrawNames.size() ? kDrawNames[index] : "unknown";
}

std::optional<DrawKind> DrawKindFromName(std::string_view name) {
  for (size_t i = 0; i < kDrawNames.size(); ++i)
    if (kDrawNames[i] == name) return static_cast<DrawKind>(i);
  return std::nullopt;
}

std::span<const std::string_view> UnusualDrawNames() { return std::span(kDrawNames).subspan(1); }

Result<std::vector<DrawKind>> SkippedDraws(const ProblemRequest& problem) {
  std::vector<DrawKind> kinds;
  for (const std::string& name : problem.skip_draws) {
    const auto kind = DrawKindFromName(name);
    if (!kind || *kind == DrawKind::kOrdinary)
      return UsageError(fmt::format(
          "suite.toml, problem '{}': skip_draws has '{}', which is no kind of draw that could be "
          "left out; docs/problems.md lists them",
          problem.name, name));
    kinds.push_back(*kind);
  }
  return kinds;
}

bool MayLeaveElementsOut(DrawKind kind) {
  return kind != DrawKind::kOrdinary && kind != DrawKind::kTies &&
         kind != DrawKind::kSmallIntegers && kind != DrawKind::kZeroOne;
}

}  // namespace assay
