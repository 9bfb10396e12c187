#include "model/dtype.h"

#include <gtest/gtest.h>

#include <cfloat>

#include "model/problem.h"

namespace assay {
namespace {

constexpr DType kAll[] = {DType::kFloat64, DType::kFloat32, DType::kFloat16,    DType::kBFloat16,
                          DType::kInt64,   DType::kInt32,   DType::kInt16,      DType::kInt8,
                          DType::kUInt8,   DType::kBool,    DType::kFloat8E4M3, DType::kFloat8E5M2};

TEST(DType, NamesReadBack) {
  for (const DType dtype : kAll) EXPECT_EQ(DTypeFromName(DTypeName(dtype)), dtype);
  EXPECT_EQ(DTypeName(DType::kFloat8E4M3), "float8_e4m3fn");  // as PyTorch calls it
  EXPECT_FALSE(DTypeFromName("unknown"));
  EXPECT_EQ(DTypeName(static_cast<DType>(0)), "unknown");
  EXPECT_EQ(wire::ElementBytes(static_cast<DType>(99)), 0u);
}

TEST(DType, OnlyFloatingPointHasRounding) {
  for (const DType dtype : kAll)
    EXPECT_EQ(IsFloatingPoint(dtype), UnitRoundoff(NativeClass(dtype)) > 0) << DTypeName(dtype);
  EXPECT_TRUE(IsFloatingPoint(DType::kBFloat16));
  EXPECT_FALSE(IsFloatingPoint(DType::kBool));
}

TEST(PrecisionClass, UnitRoundoffIsHalfOfEpsilon) {
  EXPECT_EQ(UnitRoundoff(PrecisionClass::kFloat64), DBL_EPSILON / 2);
  EXPECT_EQ(UnitRoundoff(PrecisionClass::kFloat32), FLT_EPSILON / 2);
  EXPECT_EQ(UnitRoundoff(PrecisionClass::kTf32), 0x1p-11);
  EXPECT_EQ(UnitRoundoff(PrecisionClass::kBFloat16), 0x1p-8);
}

TEST(PrecisionClass, NamesReadBackAndFloat16IsTf32) {
  for (const PrecisionClass precision :
       {PrecisionClass::kFloat64, PrecisionClass::kFloat32, PrecisionClass::kTf32,
        PrecisionClass::kBFloat16, PrecisionClass::kFloat8, PrecisionClass::kExact})
    EXPECT_EQ(PrecisionClassFromName(PrecisionClassName(precision)), precision);
  EXPECT_EQ(PrecisionClassFromName("float16"), PrecisionClass::kTf32);
  EXPECT_EQ(NativeClass(DType::kFloat16), PrecisionClass::kTf32);
  EXPECT_FALSE(PrecisionClassFromName("half"));
}

TEST(DescribeArgument, SaysRoleNameTypeAndShape) {
  wire::ArgumentSpec tensor{};
  tensor.name[0] = 'x';
  tensor.role = wire::Role::kInput;
  tensor.kind = wire::Kind::kTensor;
  tensor.dtype = DType::kFloat32;
  tensor.rank = 2;
  tensor.shape[0] = 512;
  tensor.shape[1] = 4096;
  EXPECT_EQ(DescribeArgument(tensor), "input x float32[512, 4096]");
  tensor.rank = 0;
  tensor.role = wire::Role::kOutput;
  EXPECT_EQ(DescribeArgument(tensor), "output x float32[]");
  tensor.kind = wire::Kind::kFloat;
  tensor.role = wire::Role::kParameter;
  EXPECT_EQ(DescribeArgument(tensor), "parameter x float");
}

}  // namespace
}  // namespace assay
