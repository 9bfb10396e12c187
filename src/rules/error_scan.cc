#include "rules/error_scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "rules/elements.h"
#include "rules/error_bounds.h"
#include "rules/row_kernels.h"

namespace assay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Outputs this many spacings above the denormals feel nothing of them.
constexpr double kFarAboveDenormals = 0x1p40;

bool SameKind(double got, double expected) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::isfinite(got);
}

bool AllFinite(const double* values, int64_t count) {
  double poison = 0;
  for (int64_t i = 0; i < count; ++i) poison += values[i] - values[i];
  return poison == 0;
}

double Relative(double error2, double truth2) {
  if (error2 == 0) return 0;
  return truth2 > 0 ? std::sqrt(error2 / truth2) : kInfinity;
}

struct Chunk {
  std::array<double, kChunkElements> candidate;
  std::array<double, kChunkElements> truth;
  std::array<double, kChunkElements> reference;
  int64_t finite = 0;  // elements whose truth is finite
  bool kinds_agree = true;
};

// Reads an output chunk by chunk; float64 outputs are scaled by a power of two so that squares
// neither overflow nor vanish.
class Reader {
 public:
  explicit Reader(const OutputView& output)
      : output_(output), spacing_(DenormalSpacing(output.dtype)) {
    if (output.dtype == DType::kFloat64) FindScale();
    double sum2 = 0;
    int64_t finite = 0;
    AddTruth(0, output.count, &sum2, &finite);
    root_mean_square_ = finite > 0 ? std::sqrt(sum2 / static_cast<double>(finite)) : 0;
    snaps_ = root_mean_square_ / scale_ < ScaleAboveDenormals(output.dtype);
    if (root_mean_square_ == 0) root_mean_square_ = output.ordinary_scale;
  }

  double unscale() const { return 1 / scale_; }

  // Relative to the truth's norm. Where the truth is zero everywhere, each of its elements counts
  // as the least scale of a row.
  double RelativeNorm(const RowSums& sums) const {
    if (sums.reference2 > 0) return Relative(sums.difference2, sums.reference2);
    const double scale = root_mean_square_ * kRowScaleFloor;
    return Relative(sums.difference2, scale * scale * static_cast<double>(output_.count));
  }

  double RowScale(int64_t begin, int64_t count) const {
    double sum2 = 0;
    int64_t finite = 0;
    AddTruth(begin, count, &sum2, &finite);
    const double own = finite > 0 ? std::sqrt(sum2 / static_cast<double>(finite)) : 0;
    return std::max(own, root_mean_square_ * kRowScaleFloor);
  }

  // Elements that are NaN or infinite, rightly or wrongly, read as 0 in every array; an unusable
  // reference element reads as the truth.
  void Read(int64_t begin, int64_t count, bool with_reference, Chunk* chunk) const {
    LoadScaled(output_.dtype, output_.candidate, begin, count, chunk->candidate.data());
    LoadTruth(begin, count, chunk->truth.data());
    if (with_reference)
      LoadScaled(output_.dtype, output_.reference, begin, count, chunk->reference.data());
    chunk->finite = count;
    chunk->kinds_agree = true;
    if (!AllFinite(chunk->candidate.data(), count) || !AllFinite(chunk->truth.data(), count) ||
        (with_reference && !AllFinite(chunk->reference.data(), count)))
      SetSpecialAside(count, with_reference, chunk);
    if (snaps_) Snap(count, chunk);
  }

 private:
  void LoadScaled(DType dtype, const void* data, int64_t begin, int64_t count, double* out) const {
    LoadAsDouble(dtype, data, begin, count, out);
    if (scale_ != 1)
      for (int64_t i = 0; i < count; ++i) out[i] *= scale_;
  }

  void LoadTruth(int64_t begin, int64_t count, double* out) const {
    if (output_.oracle != nullptr)
      LoadScaled(DType::kFloat64, output_.oracle, begin, count, out);
    else
      LoadScaled(output_.dtype, output_.reference, begin, count, out);
  }

  void FindScale() {
    std::array<double, kChunkElements> truth;
    double largest = 0;
    for (int64_t begin = 0; begin < output_.count; begin += kChunkElements) {
      const int64_t count = std::min(kChunkElements, output_.count - begin);
      LoadTruth(begin, count, truth.data());
      for (int64_t i = 0; i < count; ++i) {
        const double size = std::fabs(truth[static_cast<size_t>(i)]);
        if (std::isfinite(size) && size > largest) largest = size;
      }
    }
    if (largest > 0) scale_ = std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1000, 1000));
  }

  void AddTruth(int64_t begin, int64_t total, double* sum2, int64_t* finite) const {
    std::array<double, kChunkElements> truth;
    for (int64_t done = 0; done < total; done += kChunkElements) {
      const int64_t count = std::min(kChunkElements, total - done);
      LoadTruth(begin + done, count, truth.data());
      *finite += count;
      if (!AllFinite(truth.data(), count)) {
        for (int64_t i = 0; i < count; ++i) {
          double& value = truth[static_cast<size_t>(i)];
          if (!std::isfinite(value)) {
            value = 0;
            --*finite;
          }
        }
      }
      RowSums sums;
      Kernels().sums_double(truth.data(), truth.data(), count, &sums);
      *sum2 += sums.reference2;
    }
  }

  static void SetSpecialAside(int64_t count, bool with_reference, Chunk* chunk) {
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      double& got = chunk->candidate[i];
      double& expected = chunk->truth[i];
      if (!SameKind(got, expected)) chunk->kinds_agree = false;
      if (!std::isfinite(expected)) {
        --chunk->finite;
        got = expected = 0;
        if (with_reference) chunk->reference[i] = 0;
      } else if (!std::isfinite(got)) {
        got = expected;
      }
      if (with_reference && !std::isfinite(chunk->reference[i])) chunk->reference[i] = expected;
    }
  }

  void Snap(int64_t count, Chunk* chunk) const {
    const double step = spacing_ * scale_;
    for (size_t i = 0; i < static_cast<size_t>(count); ++i)
      if (std::fabs(chunk->candidate[i] - chunk->truth[i]) <= step)
        chunk->candidate[i] = chunk->truth[i];
  }

  const OutputView& output_;
  double spacing_;
  double scale_ = 1;
  double root_mean_square_ = 0;  // the truth's, scaled; on ordinary draws where that is 0
  bool snaps_ = false;
};

int64_t WorstIn(const Chunk& chunk, int64_t count, double row_scale) {
  int64_t worst = 0;
  double largest = -1;
  for (int64_t i = 0; i < count; ++i) {
    const double truth = chunk.truth[static_cast<size_t>(i)];
    const double error = std::fabs(chunk.candidate[static_cast<size_t>(i)] - truth);
    const double size = error == 0 ? 0 : error / (row_scale + std::fabs(truth));
    if (size > largest) {
      largest = size;
      worst = i;
    }
  }
  return worst;
}

}  // namespace

double ScaleAboveDenormals(DType dtype) { return DenormalSpacing(dtype) * kFarAboveDenormals; }

MeasuredErrors ScanErrors(const OutputView& output) {
  MeasuredErrors errors;
  const bool with_reference = output.oracle != nullptr;
  const Reader reader(output);
  const RowKernels& kernels = Kernels();
  const int64_t row = RowElements(output.shape, output.count);
  RowSums candidate;
  RowSums reference;
  Chunk chunk;
  for (int64_t row_begin = 0; row_begin < output.count; row_begin += row) {
    const int64_t row_count = std::min(row, output.count - row_begin);
    const double scale = reader.RowScale(row_begin, row_count);
    for (int64_t done = 0; done < row_count; done += kChunkElements) {
      const int64_t count = std::min(kChunkElements, row_count - done);
      reader.Read(row_begin + done, count, with_reference, &chunk);
      errors.kinds_agree = errors.kinds_agree && chunk.kinds_agree;
      const double* y = chunk.candidate.data();
      const double* truth = chunk.truth.data();
      kernels.sums_double(y, truth, count, &candidate);
      const double element = kernels.ratio_double(y, truth, count, scale, 1);
      if (element > errors.element) {
        errors.element = element;
        errors.worst_index = row_begin + done + WorstIn(chunk, count, scale);
      }
      if (!with_reference) continue;
      const double* r = chunk.reference.data();
      kernels.sums_double(r, truth, count, &reference);
      errors.reference.element_relative = std::max(errors.reference.element_relative,
                                                   kernels.ratio_double(r, truth, count, scale, 1));
    }
  }
  errors.norm = reader.RelativeNorm(candidate);
  errors.reference.norm_relative = reader.RelativeNorm(reference);
  errors.reference.root_mean_square =
      std::sqrt(candidate.reference2 / static_cast<double>(output.count)) * reader.unscale();
  errors.max_abs = errors.kinds_agree ? candidate.difference_max * reader.unscale() : kInfinity;
  return errors;
}

namespace {

// One typed row at a time; halves go through a small buffer of floats.
class CheapRows {
 public:
  explicit CheapRows(const OutputView& output) : output_(output) {}

  void Sum(int64_t begin, int64_t count, RowSums* sums) {
    if (output_.dtype == DType::kFloat32)
      return Kernels().sums_float(Candidate<float>(begin), Reference<float>(begin), count, sums);
    if (output_.dtype == DType::kFloat64)
      return Kernels().sums_double(Candidate<double>(begin), Reference<double>(begin), count, sums);
    for (int64_t done = 0; done < count; done += kChunkElements) {
      const int64_t part = std::min(kChunkElements, count - done);
      LoadHalves(begin + done, part);
      Kernels().sums_float(candidate_.data(), reference_.data(), part, sums);
    }
  }

  double Ratio(int64_t begin, int64_t count, double offset, double slope) {
    if (output_.dtype == DType::kFloat32)
      return Kernels().ratio_float(Candidate<float>(begin), Reference<float>(begin), count, offset,
                                   slope);
    if (output_.dtype == DType::kFloat64)
      return Kernels().ratio_double(Candidate<double>(begin), Reference<double>(begin), count,
                                    offset, slope);
    double ratio = 0;
    for (int64_t done = 0; done < count; done += kChunkElements) {
      const int64_t part = std::min(kChunkElements, count - done);
      LoadHalves(begin + done, part);
      ratio = std::max(
          ratio, Kernels().ratio_float(candidate_.data(), reference_.data(), part, offset, slope));
    }
    return ratio;
  }

 private:
  template <typename T>
  const T* Candidate(int64_t begin) const {
    return static_cast<const T*>(output_.candidate) + begin;
  }
  template <typename T>
  const T* Reference(int64_t begin) const {
    return static_cast<const T*>(output_.reference) + begin;
  }
  void LoadHalves(int64_t begin, int64_t count) {
    LoadHalfAsFloat(output_.dtype, output_.candidate, begin, count, candidate_.data());
    LoadHalfAsFloat(output_.dtype, output_.reference, begin, count, reference_.data());
  }

  const OutputView& output_;
  std::array<float, kChunkElements> candidate_;
  std::array<float, kChunkElements> reference_;
};

}  // namespace

std::optional<MeasuredErrors> ScanErrorsCheaply(const OutputView& output, double element_limit) {
  MeasuredErrors errors;
  CheapRows rows(output);
  RowSums total;
  const int64_t row = RowElements(output.shape, output.count);
  for (int64_t begin = 0; begin < output.count; begin += row) {
    const int64_t count = std::min(row, output.count - begin);
    RowSums sums;
    rows.Sum(begin, count, &sums);
    if (!std::isfinite(sums.difference2)) return std::nullopt;
    const double scale = std::sqrt(sums.reference2 / static_cast<double>(count));
    if (sums.difference_max > 0) {
      double element = sums.difference_max / scale;
      if (!(element <= element_limit)) element = rows.Ratio(begin, count, scale, 1);
      if (!(element <= element_limit)) return std::nullopt;
      errors.element = std::max(errors.element, element);
    }
    total.difference2 += sums.difference2;
    total.reference2 += sums.reference2;
    total.difference_max = std::max(total.difference_max, sums.difference_max);
  }
  // Squares of float64 values may overflow or vanish, those of the other dtypes cannot.
  const bool safe =
      output.dtype != DType::kFloat64 || (total.reference2 > 1e-200 && total.reference2 < 1e200);
  if (total.difference_max > 0 && !safe) return std::nullopt;
  errors.norm = Relative(total.difference2, total.reference2);
  errors.max_abs = total.difference_max;
  return errors;
}

MeasuredErrors ScanAllClose(const OutputView& output, const AllClose& tolerance) {
  MeasuredErrors errors;
  CheapRows rows(output);
  Chunk chunk;
  for (int64_t begin = 0; begin < output.count; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, output.count - begin);
    RowSums sums;
    rows.Sum(begin, count, &sums);
    if (std::isfinite(sums.difference2)) {
      errors.max_abs = std::max(errors.max_abs, sums.difference_max);
      const double ratio = rows.Ratio(begin, count, tolerance.absolute, tolerance.relative);
      errors.element = std::max(errors.element, ratio);
      continue;
    }
    LoadAsDouble(output.dtype, output.candidate, begin, count, chunk.candidate.data());
    LoadAsDouble(output.dtype, output.reference, begin, count, chunk.truth.data());
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const double got = chunk.candidate[i];
      const double expected = chunk.truth[i];
      const bool same = got == expected || (std::isnan(got) && std::isnan(expected));
      const double error = same ? 0 : std::fabs(got - expected);
      const double allowed = tolerance.absolute + tolerance.relative * std::fabs(expected);
      const bool usable = same || (std::isfinite(got) && std::isfinite(expected));
      errors.kinds_agree = errors.kinds_agree && usable;
      errors.max_abs = std::max(errors.max_abs, usable ? error : kInfinity);
      errors.element = std::max(errors.element, !usable      ? kInfinity
                                                : error == 0 ? 0
                                                             : error / allowed);
    }
  }
  return errors;
}

void VisitWrong(const OutputView& output, double element_limit, const WrongVisitor& visit) {
  const Reader reader(output);
  const int64_t row = RowElements(output.shape, output.count);
  Chunk chunk;
  for (int64_t row_begin = 0; row_begin < output.count; row_begin += row) {
    const int64_t row_count = std::min(row, output.count - row_begin);
    const double scale = reader.RowScale(row_begin, row_count);
    for (int64_t done = 0; done < row_count; done += kChunkElements) {
      const int64_t count = std::min(kChunkElements, row_count - done);
      const int64_t begin = row_begin + done;
      reader.Read(begin, count, false, &chunk);
      for (int64_t i = 0; i < count; ++i) {
        const double truth = chunk.truth[static_cast<size_t>(i)];
        const double error = std::fabs(chunk.candidate[static_cast<size_t>(i)] - truth);
        const bool small = error <= element_limit * (scale + std::fabs(truth));
        if (small && chunk.kinds_agree) continue;
        const double got = LoadOne(output.dtype, output.candidate, begin + i);
        const double expected = output.oracle != nullptr
                                    ? output.oracle[begin + i]
                                    : LoadOne(output.dtype, output.reference, begin + i);
        if (small && SameKind(got, expected)) continue;
        if (!visit(begin + i, got, expected)) return;
      }
    }
  }
}

void VisitNotClose(const OutputView& output, const AllClose& tolerance, const WrongVisitor& visit) {
  Chunk chunk;
  for (int64_t begin = 0; begin < output.count; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, output.count - begin);
    LoadAsDouble(output.dtype, output.candidate, begin, count, chunk.candidate.data());
    LoadAsDouble(output.dtype, output.reference, begin, count, chunk.truth.data());
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const double got = chunk.candidate[i];
      const double expected = chunk.truth[i];
      const double allowed = tolerance.absolute + tolerance.relative * std::fabs(expected);
      if (got == expected || (std::isnan(got) && std::isnan(expected))) continue;
      if (std::isfinite(expected) && std::fabs(got - expected) <= allowed) continue;
      if (!visit(begin + static_cast<int64_t>(i), got, expected)) return;
    }
  }
}

namespace {

bool ExactlyRight(const OutputView& output, int64_t begin, int64_t count) {
  const int64_t bytes = wire::ElementBytes(output.dtype);
  const char* got = static_cast<const char*>(output.candidate) + begin * bytes;
  const char* expected = static_cast<const char*>(output.reference) + begin * bytes;
  if (std::memcmp(got, expected, static_cast<size_t>(count * bytes)) != 0) return false;
  if (output.dtype != DType::kBool) return true;
  unsigned char all = 0;
  for (int64_t i = 0; i < count; ++i) all |= static_cast<unsigned char>(got[i]);
  return all <= 1;
}

}  // namespace

void VisitInexact(const OutputView& output, const WrongVisitor& visit) {
  for (int64_t begin = 0; begin < output.count; begin += kChunkElements) {
    const int64_t count = std::min(kChunkElements, output.count - begin);
    if (ExactlyRight(output, begin, count)) continue;
    for (int64_t i = begin; i < begin + count; ++i) {
      if (ExactlyRight(output, i, 1)) continue;
      if (!visit(i, LoadOne(output.dtype, output.candidate, i),
                 LoadOne(output.dtype, output.reference, i)))
        return;
    }
  }
}

}  // namespace assay
