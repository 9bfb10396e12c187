#include "rules/wrong_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "rules/elements.h"
#include "rules/error_bounds.h"
#include "rules/error_scan.h"

namespace assay {
namespace {

constexpr int64_t kStrideMax = 64;
constexpr int64_t kLinesMax = 1 << 22;  // rows or columns that are counted one by one
constexpr int64_t kLongLine = 4;  // elements of a row or column that luck does not make all right
constexpr double kRightShareMin = 0.1;  // of single elements that must be right around a place
constexpr double kFilled = 0.75;        // share of a place's rows or columns that must be wrong
constexpr double kMostly = 0.9;         // share of a place that must be wrong to call it that place
constexpr double kNearlyAll = 0.98;     // share of the samples that must fit a pattern of values
constexpr size_t kSamplesMin = 4;       // below this many a pattern of values is luck
constexpr double kStableSpread = 0.01;  // of a factor's or offset's distance from doing nothing

// Keeps every stride-th element; when full, drops every second and doubles the stride: spread over
// all, bounded.
class SpreadSamples {
 public:
  explicit SpreadSamples(std::vector<WrongSample>* samples) : samples_(samples) {}
  void Add(const WrongSample& sample) {
    if (seen_++ % stride_ != 0) return;
    if (samples_->size() == kWrongSamplesMax) {
      for (size_t i = 0; i < kWrongSamplesMax / 2; ++i) (*samples_)[i] = (*samples_)[2 * i];
      samples_->resize(kWrongSamplesMax / 2);
      stride_ *= 2;
      if ((seen_ - 1) % stride_ != 0) return;
    }
    samples_->push_back(sample);
  }

 private:
  std::vector<WrongSample>* samples_;
  int64_t seen_ = 0;
  int64_t stride_ = 1;
};

double Truth(const OutputView& output, int64_t index) {
  return output.oracle != nullptr ? output.oracle[index]
                                  : LoadOne(output.dtype, output.reference, index);
}

bool SameBytes(const OutputView& output, const void* other, int64_t index) {
  const int64_t bytes = wire::ElementBytes(output.dtype);
  return std::memcmp(static_cast<const char*>(output.candidate) + index * bytes,
                     static_cast<const char*>(other) + index * bytes,
                     static_cast<size_t>(bytes)) == 0;
}

std::string Plural(int64_t count, const char* noun) {
  return count == 1 ? std::string(noun) : fmt::format("{} {}s", count, noun);
}

// One axis of the output: which of its lines hold wrong elements.
struct Axis {
  const char* noun;
  const std::vector<int64_t>& wrong_in;  // elements, by line
  int64_t line_elements;
};

std::string DescribeStride(const Axis& axis, int64_t first, int64_t wrong_lines) {
  const int64_t lines = static_cast<int64_t>(axis.wrong_in.size());
  for (int64_t stride = 2; stride <= std::min(kStrideMax, lines / 2); ++stride) {
    const int64_t expected = (lines - first + stride - 1) / stride;
    if (first >= stride || expected < 2 || wrong_lines > expected) continue;
    if (static_cast<double>(wrong_lines) < kMostly * static_cast<double>(expected)) continue;
    bool fits = true;
    for (int64_t i = 0; i < lines && fits; ++i)
      fits = axis.wrong_in[static_cast<size_t>(i)] == 0 || i % stride == first;
    if (!fits) continue;
    if (stride == 2) return fmt::format("every second {} is wrong, from {} on", axis.noun, first);
    return fmt::format("every {}th {} is wrong, from {} on", stride, axis.noun, first);
  }
  return {};
}

// Few right elements beside many wrong ones may be right by luck, so they mark no place.
bool LeavesEnoughRight(int64_t right, int64_t all) {
  return static_cast<double>(right) >= kRightShareMin * static_cast<double>(all);
}

std::string DescribeAxis(const Axis& axis) {
  const int64_t lines = static_cast<int64_t>(axis.wrong_in.size());
  if (lines < 2) return {};
  int64_t first = lines;
  int64_t last = -1;
  int64_t wrong_lines = 0;
  for (int64_t i = 0; i < lines; ++i) {
    if (axis.wrong_in[static_cast<size_t>(i)] == 0) continue;
    first = std::min(first, i);
    last = i;
    ++wrong_lines;
  }
  if (wrong_lines == lines || wrong_lines == 0) return {};
  if (axis.line_elements < kLongLine && !LeavesEnoughRight(lines - wrong_lines, lines)) return {};
  const int64_t span = last - first + 1;
  if (wrong_lines == span) {
    const char* verb = span == 1 ? "is" : "are";
    if (last == lines - 1)
      return fmt::format("only the last {} of {} {} wrong: a boundary", Plural(span, axis.noun),
                         lines, verb);
    if (first == 0)
      return fmt::format("only the first {} of {} {} wrong: a boundary", Plural(span, axis.noun),
                         lines, verb);
    if (span == 1) return fmt::format("only {} {} of {} is wrong", axis.noun, first, lines);
    return fmt::format("only {}s {} to {} of {} are wrong", axis.noun, first, last, lines);
  }
  return DescribeStride(axis, first, wrong_lines);
}

// Whether wrong elements fill the lines that they touch, so that an accident does not pass for a
// place.
bool Fills(const WrongSet& wrong, const Axis& axis) {
  int64_t touched = 0;
  for (int64_t in_line : axis.wrong_in) touched += in_line > 0 ? axis.line_elements : 0;
  return static_cast<double>(wrong.count) >= kFilled * static_cast<double>(touched);
}

using Fits = std::function<bool(const WrongSample&)>;

bool NearlyAllFit(const WrongSet& wrong, const Fits& fits) {
  if (wrong.samples.size() < kSamplesMin) return false;
  const auto fitting = std::count_if(wrong.samples.begin(), wrong.samples.end(), fits);
  return static_cast<double>(fitting) >= kNearlyAll * static_cast<double>(wrong.samples.size());
}

bool Near(double a, double b, double relative) {
  return a == b || (std::isfinite(b) && std::fabs(a - b) <= relative * std::fabs(b));
}

struct Center {
  double median = 0;
  double spread = 0;  // median distance from the median
};

Center FindCenter(std::vector<double> values) {
  Center center;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  center.median = *middle;
  for (double& value : values) value = std::fabs(value - center.median);
  std::nth_element(values.begin(), middle, values.end());
  center.spread = *middle;
  return center;
}

std::string DescribeMoved(const OutputView& output, const WrongSet& wrong, double relative) {
  const auto holds = [&](int64_t from_column_offset) {
    // Elements at the end of a row have no neighbour to be compared with: they say nothing.
    WrongSet inner;
    for (const WrongSample& sample : wrong.samples) {
      const int64_t column = sample.index % wrong.columns + from_column_offset;
      if (column >= 0 && column < wrong.columns) inner.samples.push_back(sample);
    }
    return NearlyAllFit(inner, [&](const WrongSample& sample) {
      const double other = Truth(output, sample.index + from_column_offset);
      return other != sample.expected && Near(sample.got, other, relative);
    });
  };
  if (wrong.columns > static_cast<int64_t>(kSamplesMin)) {
    if (holds(-1)) return "each row is shifted by one: element i holds what belongs at i - 1";
    if (holds(1)) return "each row is shifted by one: element i holds what belongs at i + 1";
  }
  const size_t rank = output.shape.size();
  if (rank >= 2 && output.shape[rank - 1] == output.shape[rank - 2] && wrong.columns > 1) {
    const int64_t side = wrong.columns;
    const bool transposed = NearlyAllFit(wrong, [&](const WrongSample& sample) {
      const int64_t matrix = sample.index / (side * side) * side * side;
      const int64_t row = (sample.index - matrix) / side;
      const int64_t column = (sample.index - matrix) % side;
      return Near(sample.got, Truth(output, matrix + column * side + row), relative);
    });
    if (transposed) return "transposed: element [i][j] holds what belongs at [j][i]";
  }
  return {};
}

}  // namespace

WrongSet CollectWrong(const OutputView& output, const void* poison) {
  WrongSet wrong;
  wrong.elements = output.count;
  wrong.columns = output.shape.empty() ? 1 : std::max<int64_t>(output.shape.back(), 1);
  wrong.rows = std::max<int64_t>(output.count / wrong.columns, 1);
  if (wrong.rows <= kLinesMax) wrong.wrong_in_row.resize(static_cast<size_t>(wrong.rows));
  if (wrong.columns <= kLinesMax) wrong.wrong_in_column.resize(static_cast<size_t>(wrong.columns));
  SpreadSamples samples(&wrong.samples);
  const WrongVisitor visit = [&](int64_t index, double got, double expected) {
    if (wrong.count++ == 0) wrong.first = index;
    wrong.last = index;
    wrong.nan += std::isnan(got);
    wrong.infinite += std::isinf(got);
    wrong.finite += std::isfinite(got) && !std::isfinite(expected);
    wrong.zero += got == 0;
    wrong.poisoned += poison != nullptr && SameBytes(output, poison, index);
    const auto row = static_cast<size_t>(index / wrong.columns);
    const auto column = static_cast<size_t>(index % wrong.columns);
    if (row < wrong.wrong_in_row.size()) ++wrong.wrong_in_row[row];
    if (column < wrong.wrong_in_column.size()) ++wrong.wrong_in_column[column];
    samples.Add({index, got, expected});
    return true;
  };
  if (!IsFloatingPoint(output.dtype)) {
    VisitInexact(output, visit);
    return wrong;
  }
  const PrecisionClass native = NativeClass(output.dtype);
  const ReferenceError error = ScanErrors(output).reference;
  VisitWrong(output, BoundsFor(native, native, error, output.count).element, visit);
  return wrong;
}

std::string DescribePlace(const WrongSet& wrong) {
  if (wrong.count == 0 || wrong.count == wrong.elements) return {};
  const Axis columns{wrong.rows > 1 ? "column" : "element", wrong.wrong_in_column, wrong.rows};
  const Axis rows{wrong.columns > 1 ? "row" : "element", wrong.wrong_in_row, wrong.columns};
  for (const Axis& axis : {columns, rows}) {
    if (!Fills(wrong, axis)) continue;
    std::string place = DescribeAxis(axis);
    if (!place.empty()) return place;
  }
  const int64_t span = wrong.last - wrong.first + 1;
  const bool dense = static_cast<double>(wrong.count) >= kMostly * static_cast<double>(span) &&
                     LeavesEnoughRight(wrong.elements - span, wrong.elements);
  if (dense && wrong.count > 1 && wrong.last == wrong.elements - 1)
    return fmt::format(
        "only the last {} of {} elements, in memory order, are wrong: the last block", span,
        wrong.elements);
  if (dense && wrong.count > 1)
    return fmt::format("only elements {} to {} of {}, in memory order, are wrong: a block",
                       wrong.first, wrong.last, wrong.elements);
  return {};
}

Hint DescribeValues(const OutputView& output, const WrongSet& wrong) {
  // Loose enough for errors of the output's own precision, tight enough not to fit by luck.
  const double relative = std::max(1e-5, 4 * UnitRoundoff(NativeClass(output.dtype)));
  if (NearlyAllFit(wrong, [&](const WrongSample& sample) {
        return Near(sample.got, -sample.expected, relative);
      }))
    return {wrong.count == wrong.elements ? "the sign is flipped"
                                          : "the wrong elements are right but for their sign",
            Mistake::kFactor};
  std::vector<double> ratios;
  std::vector<double> differences;
  for (const WrongSample& sample : wrong.samples) {
    if (!std::isfinite(sample.got) || !std::isfinite(sample.expected)) continue;
    differences.push_back(sample.got - sample.expected);
    if (sample.expected != 0) ratios.push_back(sample.got / sample.expected);
  }
  if (ratios.size() >= 2 * kSamplesMin && 2 * ratios.size() > wrong.samples.size()) {
    const Center center = FindCenter(ratios);
    if (center.median != 0 && center.spread <= kStableSpread * std::fabs(center.median - 1))
      return {fmt::format("off by a factor of {:#.4g}", center.median), Mistake::kFactor};
  }
  if (differences.size() >= 2 * kSamplesMin) {
    const Center center = FindCenter(differences);
    const bool varied = NearlyAllFit(wrong, [&](const WrongSample& sample) {
      return sample.expected == wrong.samples.front().expected;
    });
    if (!varied && center.median != 0 && center.spread <= kStableSpread * std::fabs(center.median))
      return {fmt::format("off by a constant: {:+#.4g} everywhere", center.median),
              Mistake::kFactor};
  }
  return {DescribeMoved(output, wrong, relative), Mistake::kMisplaced};
}

}  // namespace assay
