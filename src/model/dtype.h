// Names and facts of element types, for people and for JSON ("float32"). Pure.
#pragma once

#include <optional>
#include <string_view>

#include "wire/types.h"

namespace assay {

using wire::DType;

// "float32", "bfloat16", "bool"...; "unknown" for a number that is no DType.
std::string_view DTypeName(DType dtype);
std::optional<DType> DTypeFromName(std::string_view name);
bool IsFloatingPoint(DType dtype);
// The element type in a C++ candidate: "float", "assay::float16", "int64_t"; empty for no DType.
std::string_view CppTypeName(DType dtype);

// Classes of precision that a result may have to reach, finest first. tf32 and float16 share 11
// significant bits and cannot be told apart by their errors, so one class stands for both.
// kFloat8 is that of float8 outputs alone: no other dtype may be computed in it.
enum class PrecisionClass { kFloat64, kFloat32, kTf32, kBFloat16, kFloat8, kExact };

std::string_view PrecisionClassName(
    PrecisionClass precision);  // "float64", "float32", "tf32", "bfloat16", "float8", "exact"
std::optional<PrecisionClass> PrecisionClassFromName(
    std::string_view name);  // also takes "float16" (as tf32)

// Unit roundoff u = 2^-p of a class with p significant bits (round to nearest); 0 for kExact.
double UnitRoundoff(PrecisionClass precision);
// Returns the class of a dtype's own arithmetic: kExact for integers and bool.
PrecisionClass NativeClass(DType dtype);

}  // namespace assay
