#include "rules/elements.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "rules/row_kernels.h"

namespace assay {
namespace {

constexpr int64_t kRowElementsMin = 16;

template <typename T>
T ReadAt(const void* data, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * int64_t{sizeof(T)}, sizeof(T));
  return value;
}

template <typename T>
void Convert(const void* data, int64_t begin, int64_t count, double* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<double>(ReadAt<T>(data, begin + i));
}

inline float BFloat16ToFloat(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

// A sign, an exponent, a mantissa of three (e4m3) or two bits. e4m3 has numbers where e5m2 has
// infinities, and NaN at 127 and 255 alone.
double Float8ToDouble(DType dtype, uint8_t bits) {
  const int mantissa_bits = dtype == DType::kFloat8E4M3 ? 3 : 2;
  const int exponent_max = dtype == DType::kFloat8E4M3 ? 15 : 31, bias = exponent_max / 2;
  const int exponent = (bits & 0x7F) >> mantissa_bits;
  const int unit = 1 << mantissa_bits, mantissa = bits & (unit - 1);
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  const bool special = dtype == DType::kFloat8E4M3 ? (bits & 0x7F) == 0x7F : exponent == 31;
  if (special && (mantissa != 0 || dtype == DType::kFloat8E4M3))
    return std::numeric_limits<double>::quiet_NaN();
  if (special) return sign * std::numeric_limits<double>::infinity();
  return exponent == 0 ? sign * std::ldexp(mantissa, 1 - bias - mantissa_bits)
                       : sign * std::ldexp(unit + mantissa, exponent - bias - mantissa_bits);
}

template <typename T>
void ConvertFloat8(DType dtype, const void* data, int64_t begin, int64_t count, T* out) {
  using Table = std::array<double, 256>;
  static constexpr auto kMake = [](DType made) {
    Table table;
    for (size_t bits = 0; bits < table.size(); ++bits)
      table[bits] = Float8ToDouble(made, static_cast<uint8_t>(bits));
    return table;
  };
  static const Table e4m3 = kMake(DType::kFloat8E4M3), e5m2 = kMake(DType::kFloat8E5M2);
  const Table& table = dtype == DType::kFloat8E4M3 ? e4m3 : e5m2;
  for (int64_t i = 0; i < count; ++i)
    out[i] = static_cast<T>(table[ReadAt<uint8_t>(data, begin + i)]);
}

void ConvertHalves(DType dtype, const void* data, int64_t begin, int64_t count, double* out) {
  std::array<float, 256> floats;
  for (int64_t done = 0; done < count;) {
    const int64_t part = std::min<int64_t>(floats.size(), count - done);
    LoadHalfAsFloat(dtype, data, begin + done, part, floats.data());
    for (int64_t i = 0; i < part; ++i) out[done + i] = double{floats[static_cast<size_t>(i)]};
    done += part;
  }
}

}  // namespace

void LoadHalfAsFloat(DType dtype, const void* data, int64_t begin, int64_t count, float* out) {
  if (dtype == DType::kFloat16) {
    Kernels().widen_float16(static_cast<const char*>(data) + 2 * begin, count, out);
  } else if (dtype == DType::kFloat8E4M3 || dtype == DType::kFloat8E5M2) {
    ConvertFloat8(dtype, data, begin, count, out);
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = BFloat16ToFloat(ReadAt<uint16_t>(data, begin + i));
  }
}

void LoadAsDouble(DType dtype, const void* data, int64_t begin, int64_t count, double* out) {
  switch (dtype) {
    case DType::kFloat64:
      return Convert<double>(data, begin, count, out);
    case DType::kFloat32:
      return Convert<float>(data, begin, count, out);
    case DType::kFloat16:
    case DType::kBFloat16:
      return ConvertHalves(dtype, data, begin, count, out);
    case DType::kInt64:
      return Convert<int64_t>(data, begin, count, out);
    case DType::kInt32:
      return Convert<int32_t>(data, begin, count, out);
    case DType::kInt16:
      return Convert<int16_t>(data, begin, count, out);
    case DType::kInt8:
      return Convert<int8_t>(data, begin, count, out);
    case DType::kUInt8:
    case DType::kBool:
      return Convert<uint8_t>(data, begin, count, out);
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return ConvertFloat8(dtype, data, begin, count, out);
  }
  ASSAY_CHECK(!"a dtype that does not exist");
}

double LoadOne(DType dtype, const void* data, int64_t index) {
  double value = 0;
  LoadAsDouble(dtype, data, index, 1, &value);
  return value;
}

int64_t LoadWhole(DType dtype, const void* data, int64_t index) {
  // Smaller types are exact as doubles.
  return dtype == DType::kInt64 ? ReadAt<int64_t>(data, index)
                                : static_cast<int64_t>(LoadOne(dtype, data, index));
}

int64_t CountNonFinite(DType dtype, const void* data, int64_t count) {
  std::array<double, kChunkElements> chunk;
  int64_t found = 0;
  for (int64_t begin = 0; begin < count; begin += kChunkElements) {
    const int64_t part = std::min(kChunkElements, count - begin);
    LoadAsDouble(dtype, data, begin, part, chunk.data());
    found += std::count_if(chunk.begin(), chunk.begin() + part,
                           [](double value) { return !std::isfinite(value); });
  }
  return found;
}

double DenormalSpacing(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 0x1p-1074;
    case DType::kFloat32:
      return 0x1p-149;
    case DType::kFloat16:
      return 0x1p-24;
    case DType::kBFloat16:
      return 0x1p-133;
    case DType::kFloat8E4M3:
      return 0x1p-9;
    case DType::kFloat8E5M2:
      return 0x1p-16;
    default:
      return 0;
  }
}

int64_t RowElements(const std::vector<int64_t>& shape, int64_t count) {
  int64_t elements = 1;
  for (size_t i = shape.size(); i > 0 && elements < kRowElementsMin; --i) elements *= shape[i - 1];
  return elements > 0 && count > 0 ? elements : 1;
}

std::vector<int64_t> Position(const std::vector<int64_t>& shape, int64_t index) {
  std::vector<int64_t> position(shape.size());
  for (size_t i = shape.size(); i > 0; --i) {
    position[i - 1] = shape[i - 1] > 0 ? index % shape[i - 1] : 0;
    index = shape[i - 1] > 0 ? index / shape[i - 1] : 0;
  }
  return position;
}

}  // namespace assay
