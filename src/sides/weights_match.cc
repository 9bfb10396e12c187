#include "sides/weights_match.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "model/dtype.h"

namespace assay {
namespace {

constexpr size_t kNamesShown = 4;

bool TwoHaveOneShape(const wire::Plan& plan) {
  std::set<std::vector<int64_t>> seen;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    if (argument.role == wire::Role::kParameter &&
        !seen.emplace(argument.shape, argument.shape + argument.rank).second)
      return true;
  }
  return false;
}

}  // namespace

WeightsMatch ReadWeightsMatch(std::span<const uint64_t> reply, const wire::Plan& plan) {
  WeightsMatch match;
  match.how = static_cast<WeightsMatch::How>(
      std::min(reply[0], static_cast<uint64_t>(WeightsMatch::How::kByShape)));
  match.left_over = reply[1];
  match.missing_count = reply[2];
  uint64_t index = 0;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != wire::Role::kParameter) continue;
    if (index < 64 && (reply[3] >> index & 1) != 0) {
      match.missing.emplace_back(argument.name);
      match.lacks_floats = match.lacks_floats || IsFloatingPoint(argument.dtype);
    }
    ++index;
  }
  // Of those beyond the first 64 nothing is known.
  match.lacks_floats = match.lacks_floats || match.missing_count > match.missing.size();
  match.is_guess = match.how == WeightsMatch::How::kByOrder && TwoHaveOneShape(plan);
  return match;
}

std::string MissingInWords(const WeightsMatch& match) {
  std::vector<std::string> shown = match.missing;
  if (shown.size() > kNamesShown) shown.resize(kNamesShown);
  if (shown.empty()) return fmt::format("{} parameters", match.missing_count);
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (match.missing_count > shown.size())
    text += fmt::format(" and {} more", match.missing_count - shown.size());
  return text;
}

std::string NoteOf(const WeightsMatch& match) {
  using How = WeightsMatch::How;
  std::string note;
  if (match.how == How::kFromSeed)
    note = "weights are the candidate's own, made under the reference's seed";
  else if (match.how == How::kByOrder)
    note = "weights were matched by order, not by name";
  else if (match.how == How::kByShape)
    note = "weights were matched by shape, not by name";
  else if (match.missing_count > 0)
    note =
        fmt::format("weights were set by name; it lacks the reference's {}", MissingInWords(match));
  if (match.left_over == 0 || match.how == How::kFromSeed || match.how == How::kNoWeights)
    return note;
  return fmt::format("{}; {} of its own {}", note.empty() ? "weights were set by name" : note,
                     match.left_over,
                     match.left_over == 1 ? "stays as its constructor made it"
                                          : "stay as its constructor made them");
}

}  // namespace assay
