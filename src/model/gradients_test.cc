#include "model/gradients.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Gradients, AreOfAProblemThatIsNamedAfterThemAndIsGivenThem) {
  ProblemRecord problem;
  problem.name = "softmax_gradients";
  problem.signature = {"input x float32[8, 8]", "input gradient_1 float32[8, 8]",
                       "output out float32[8, 8]"};
  EXPECT_TRUE(HasGradients(problem));
  problem.name = "softmax";
  EXPECT_FALSE(HasGradients(problem));
  // A file of somebody's own that computes gradients itself.
  problem.name = "loss_gradients";
  problem.signature = {"input w float32[8, 8]", "output gradient_1 float32[8, 8]"};
  EXPECT_FALSE(HasGradients(problem));
}

}  // namespace
}  // namespace assay
