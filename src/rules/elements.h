// Reads tensor elements of every dtype, and divides a tensor into rows. Pure; the caller owns every
// buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "model/dtype.h"

namespace assay {

// Callers read this many elements at a time: they fit into the first-level cache.
inline constexpr int64_t kChunkElements = 2048;

// Reads `count` elements from index `begin` on as doubles: exact for every dtype but 64-bit
// integers beyond 2^53.
void LoadAsDouble(DType dtype, const void* data, int64_t begin, int64_t count, double* out);
double LoadOne(DType dtype, const void* data, int64_t index);
// An element of an integer or bool tensor.
int64_t LoadWhole(DType dtype, const void* data, int64_t index);

// float16, bfloat16 and float8 to float, exact, NaN and denormals included. Loops that compilers
// vectorise, but for float8.
void LoadHalfAsFloat(DType dtype, const void* data, int64_t begin, int64_t count, float* out);

// Returns the number of NaN and infinities.
int64_t CountNonFinite(DType dtype, const void* data, int64_t count);

// Returns the distance between neighbouring denormals of a dtype, its smallest step; 0 for exact
// dtypes.
double DenormalSpacing(DType dtype);

// Returns the number of elements in one row, the unit that has its own scale. A row is the last
// dimension. If that is shorter than 16, earlier dimensions are merged in until there are 16
// elements or no more dimensions.
int64_t RowElements(const std::vector<int64_t>& shape, int64_t count);

// Returns the row-major position of a flat index.
std::vector<int64_t> Position(const std::vector<int64_t>& shape, int64_t index);

}  // namespace assay
