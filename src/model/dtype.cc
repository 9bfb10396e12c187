#include "model/dtype.h"

#include <array>
#include <utility>

namespace assay {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 12> kDTypes{{
    {DType::kFloat64, "float64"},
    {DType::kFloat32, "float32"},
    {DType::kFloat16, "float16"},
    {DType::kBFloat16, "bfloat16"},
    {DType::kInt64, "int64"},
    {DType::kInt32, "int32"},
    {DType::kInt16, "int16"},
    {DType::kInt8, "int8"},
    {DType::kUInt8, "uint8"},
    {DType::kBool, "bool"},
    {DType::kFloat8E4M3, "float8_e4m3fn"},
    {DType::kFloat8E5M2, "float8_e5m2"},
}};

constexpr std::array<std::pair<PrecisionClass, std::string_view>, 6> kClasses{{
    {PrecisionClass::kFloat64, "float64"},
    {PrecisionClass::kFloat32, "float32"},
    {PrecisionClass::kTf32, "tf32"},
    {PrecisionClass::kBFloat16, "bfloat16"},
    {PrecisionClass::kFloat8, "float8"},
    {PrecisionClass::kExact, "exact"},
}};

}  // namespace

std::string_view DTypeName(DType dtype) {
  for (const auto& [value, name] : kDTypes)
    if (value == dtype) return name;
  return "unknown";
}

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const auto& [value, known] : kDTypes)
    if (known == name) return value;
  return std::nullopt;
}

bool IsFloatingPoint(DType dtype) { return NativeClass(dtype) != PrecisionClass::kExact; }

std::string_view CppTypeName(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "double";
    case DType::kFloat32:
      return "float";
    case DType::kFloat16:
      return "assay::float16";
    case DType::kBFloat16:
      return "assay::bfloat16";
    case DType::kInt64:
      return "int64_t";
    case DType::kInt32:
      return "int32_t";
    case DType::kInt16:
      return "int16_t";
    case DType::kInt8:
      return "int8_t";
    case DType::kUInt8:
      return "uint8_t";
    case DType::kBool:
      return "bool";
    case DType::kFloat8E4M3:
      return "assay::float8_e4m3";
    case DType::kFloat8E5M2:
      return "assay::float8_e5m2";
  }
  return {};
}

std::string_view PrecisionClassName(PrecisionClass precision) {
  for (const auto& [value, name] : kClasses)
    if (value == precision) return name;
  return "unknown";
}

std::optional<PrecisionClass> PrecisionClassFromName(std::string_view name) {
  if (name == "float16") return PrecisionClass::kTf32;
  for (const auto& [value, known] : kClasses)
    if (known == name) return value;
  return std::nullopt;
}

double UnitRoundoff(PrecisionClass precision) {
  switch (precision) {
    case PrecisionClass::kFloat64:
      return 0x1p-53;
    case PrecisionClass::kFloat32:
      return 0x1p-24;
    case PrecisionClass::kTf32:
      return 0x1p-11;
    case PrecisionClass::kBFloat16:
      return 0x1p-8;
    case PrecisionClass::kFloat8:
      return 0x1p-4;
    case PrecisionClass::kExact:
      return 0;
  }
  return 0;
}

PrecisionClass NativeClass(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return PrecisionClass::kFloat64;
    case DType::kFloat32:
      return PrecisionClass::kFloat32;
    case DType::kFloat16:
      return PrecisionClass::kTf32;
    case DType::kBFloat16:
      return PrecisionClass::kBFloat16;
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return PrecisionClass::kFloat8;
    default:
      return PrecisionClass::kExact;
  }
}

}  // namespace assay
