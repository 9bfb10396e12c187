// Reading tensor elements of every dtype, and how a tensor falls into rows. Pure; every buffer is
// the caller's.
#pragma once

#include <cstdint>
#include <vector>

#include "model/dtype.h"

namespace assay {

// Elements that the readers below are asked for at a time: small enough for the first-level cache.
inline constexpr int64_t kChunkElements = 2048;

// Reads `count` elements from index `begin` on as doubles: exact for every dtype but 64-bit
// integers beyond 2^53.
void LoadAsDouble(DType dtype, const void* data, int64_t begin, int64_t count, double* out);
double LoadOne(DType dtype, const void* data, int64_t index);

// float16 and bfloat16 to float, exact, NaN and denormals included. Loops that compilers vectorise.
void LoadHalfAsFloat(DType dtype, const void* data, int64_t begin, int64_t count, float* out);

// Distance of neighbouring denormals of a dtype, the smallest step that it has; 0 for exact dtypes.
double DenormalSpacing(DType dtype);

// Elements of one row: the unit that has a scale of its own. The last dimension; where that is
// shorter than 16, dimensions before it are merged in until there are 16 elements or no more
// dimensions.
int64_t RowElements(const std::vector<int64_t>& shape, int64_t count);

// Row-major position of a flat index.
std::vector<int64_t> Position(const std::vector<int64_t>& shape, int64_t index);

}  // namespace assay
