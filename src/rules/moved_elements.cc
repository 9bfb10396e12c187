#include "rules/moved_elements.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "rules/elements.h"
#include "rules/error_scan.h"

namespace assay {
namespace {

bool Concerns(const OutputView& output, const CompareRule& rule) {
  return IsFloatingPoint(output.dtype) && output.oracle != nullptr && !rule.allclose &&
         rule.required != PrecisionClass::kExact;
}

// A row, where that is one vector of several; of shorter vectors rows hold several choices.
int64_t ElementsOfAChoice(const OutputView& output) {
  const int64_t row = RowElements(output.shape, output.count);
  const bool vectors = output.shape.size() > 1 && output.shape.back() == row;
  return vectors ? row : 1;
}

// Calls `visit(index, error)` for each wrong element, in order. False: one is wrong by no finite
// distance, there are too many choices, or `visit` says so.
template <typename Visit>
bool VisitFewWrong(const OutputView& output, const CompareRule& rule, Visit visit) {
  const int64_t of_a_choice = ElementsOfAChoice(output);
  int64_t last = -1;
  size_t choices = 0;
  bool goes_on = true;
  VisitWrong(output, ElementLimitWithOracle(output, rule),
             [&](int64_t index, double got, double expected) {
               const int64_t choice = index / of_a_choice;
               if (choice != std::exchange(last, choice)) ++choices;
               const double error = std::fabs(got - expected);
               goes_on = choices <= kChoicesMax && std::isfinite(error) && visit(index, error);
               return goes_on;
             });
  return goes_on;
}

bool IsBefore(const MovedElement& element, int64_t index) { return element.index < index; }

}  // namespace

int NudgeBits(PrecisionClass required) {
  const int bits = -std::ilogb(UnitRoundoff(required));
  return required <= PrecisionClass::kFloat32 ? bits - 4 : bits - 1;
}

MovedElements::MovedElements(const OutputView& output, const CompareRule& rule) : view_(output) {
  view_.dtype = DType::kFloat64;
  view_.candidate = view_.reference = nullptr;
  limit_ = ElementLimitWithOracle(output, rule) / kMovedFactor;
}

bool MovedElements::See(const double* truth, const double* nudged) {
  if (too_much_) return false;
  OutputView view = view_;
  view.candidate = nudged;
  view.reference = view.oracle = truth;
  std::vector<MovedElement> merged;
  auto known = elements_.begin();
  const auto most = static_cast<size_t>(kMovedShareMax * static_cast<double>(view.count));
  VisitWrong(view, limit_, [&](int64_t index, double got, double expected) {
    const double distance = std::fabs(got - expected);
    // A nudge that leaves the function's domain says nothing.
    if (!std::isfinite(distance)) return true;
    while (known != elements_.end() && known->index < index) merged.push_back(*known++);
    merged.push_back({index, distance});
    if (known != elements_.end() && known->index == index)
      merged.back().moved = std::max(distance, (known++)->moved);
    return merged.size() <= most;
  });
  merged.insert(merged.end(), known, elements_.end());
  elements_ = std::move(merged);
  too_much_ = elements_.size() > most;
  if (too_much_) elements_.clear();
  return !too_much_;
}

bool MayBeRounding(const OutputView& output, const CompareRule& rule) {
  if (!Concerns(output, rule)) return false;
  int64_t wrong = 0;
  const bool few = VisitFewWrong(output, rule, [&](int64_t, double) {
    ++wrong;
    return true;
  });
  return few && wrong > 0;
}

std::optional<OutputComparison> CompareBesideMoved(const OutputView& output,
                                                   const CompareRule& rule,
                                                   std::span<const MovedElement> moved,
                                                   int64_t* left_out) {
  if (moved.empty() || !Concerns(output, rule)) return std::nullopt;
  std::vector<int64_t> leaves;
  const bool explained = VisitFewWrong(output, rule, [&](int64_t index, double error) {
    const auto found = std::lower_bound(moved.begin(), moved.end(), index, IsBefore);
    if (found == moved.end() || found->index != index || error > kMovedFactor * found->moved)
      return false;
    leaves.push_back(index);
    return true;
  });
  if (!explained || leaves.empty()) return std::nullopt;
  const auto bytes = static_cast<size_t>(wire::ElementBytes(output.dtype));
  const auto* given = static_cast<const std::byte*>(output.candidate);
  std::vector<std::byte> others(given, given + static_cast<size_t>(output.count) * bytes);
  for (const int64_t index : leaves) {
    const size_t offset = static_cast<size_t>(index) * bytes;
    std::memcpy(others.data() + offset, static_cast<const std::byte*>(output.reference) + offset,
                bytes);
  }
  OutputView rest = output;
  rest.candidate = others.data();
  *left_out = static_cast<int64_t>(leaves.size());
  return CompareWithOracle(rest, rule, nullptr);
}

}  // namespace assay
