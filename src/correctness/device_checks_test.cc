#include "correctness/device_checks.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

// One NaN makes all of x / norm(x) NaN: there is no scale, and the host took 47 s to look at 6.4 GB
// of outputs that agree.
TEST(DenormalsDecide, OnlyWhereOutputsDiffer) {
  JudgeKernels::Measured measured;
  EXPECT_FALSE(DenormalsDecide(measured, DType::kFloat32));
  measured.norm = measured.element = 1e-3;
  EXPECT_TRUE(DenormalsDecide(measured, DType::kFloat32));
  measured.root_mean_square = 1;
  EXPECT_FALSE(DenormalsDecide(measured, DType::kFloat32));
  measured = {};
  measured.kinds_agree = false;
  EXPECT_TRUE(DenormalsDecide(measured, DType::kFloat32));
}

}  // namespace
}  // namespace assay
