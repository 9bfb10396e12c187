#include "judge/moved_rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "judge/elements.h"
#include "judge/error_scan.h"
#include "wire/types.h"

namespace assay {
namespace {

bool Concerns(const OutputView& output, const CompareRule& rule) {
  return IsFloatingPoint(output.dtype) && output.oracle != nullptr && !rule.allclose &&
         rule.required != PrecisionClass::kExact;
}

// Calls `visit(row number, index, error)` for each wrong element; false: one of them is wrong in
// another way than by some finite distance, or `visit` says so.
template <typename Visit>
bool VisitDistances(const OutputView& output, const CompareRule& rule, Visit visit) {
  const int64_t row = RowElements(output.shape, output.count);
  bool all_are = true;
  VisitWrong(output, ElementLimitWithOracle(output, rule),
             [&](int64_t index, double got, double expected) {
               const double error = std::fabs(got - expected);
               all_are = std::isfinite(error) && visit(index / row, error);
               return all_are;
             });
  return all_are;
}

const MovedRow* FindRow(std::span<const MovedRow> rows, int64_t begin) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [begin](const MovedRow& row) { return row.begin == begin; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

int NudgeBits(PrecisionClass required) {
  const int bits = -std::ilogb(UnitRoundoff(required));
  return required <= PrecisionClass::kFloat32 ? bits - 6 : bits - 1;
}

std::vector<MovedRow> DoubtfulRows(const OutputView& output, const CompareRule& rule) {
  std::vector<MovedRow> rows;
  if (!Concerns(output, rule)) return rows;
  const int64_t elements = RowElements(output.shape, output.count);
  const bool few = VisitDistances(output, rule, [&](int64_t row, double) {
    const int64_t begin = row * elements;
    if (!rows.empty() && rows.back().begin == begin) return true;
    rows.push_back({begin, std::min(elements, output.count - begin), 0});
    return rows.size() <= kDoubtfulRowsMax;
  });
  if (!few) rows.clear();
  return rows;
}

void SeeMoved(const double* truth, const double* nudged, std::span<MovedRow> rows) {
  for (MovedRow& row : rows) {
    for (int64_t i = row.begin; i < row.begin + row.count; ++i) {
      const double distance = std::fabs(nudged[i] - truth[i]);
      if (std::isfinite(distance)) row.moved = std::max(row.moved, distance);
    }
  }
}

std::optional<OutputComparison> CompareBesideMoved(const OutputView& output,
                                                   const CompareRule& rule,
                                                   std::span<const MovedRow> moved,
                                                   int64_t* left_out) {
  if (moved.empty() || !Concerns(output, rule)) return std::nullopt;
  const int64_t elements = RowElements(output.shape, output.count);
  std::vector<const MovedRow*> leaves;
  const bool explained = VisitDistances(output, rule, [&](int64_t number, double error) {
    const MovedRow* row = FindRow(moved, number * elements);
    if (row == nullptr || error > kMovedFactor * row->moved) return false;
    if (leaves.empty() || leaves.back() != row) leaves.push_back(row);
    return true;
  });
  if (!explained || leaves.empty()) return std::nullopt;
  const int64_t bytes = wire::ElementBytes(output.dtype);
  const auto* given = static_cast<const std::byte*>(output.candidate);
  std::vector<std::byte> others(given, given + output.count * bytes);
  for (const MovedRow* row : leaves)
    std::memcpy(others.data() + row->begin * bytes,
                static_cast<const std::byte*>(output.reference) + row->begin * bytes,
                static_cast<size_t>(row->count * bytes));
  OutputView rest = output;
  rest.candidate = others.data();
  *left_out = static_cast<int64_t>(leaves.size());
  return CompareWithOracle(rest, rule, nullptr);
}

}  // namespace assay
