#include "problem/gradients.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Gradients, AProblemIsAnotherProblemOfAnotherName) {
  ProblemRequest problem;
  problem.name = "softmax";
  problem.source = "class Model: pass";
  problem.flops = "2 * N";
  problem.bytes = "8 * N";
  problem.ragged["N"] = {1, 9};
  AddGradients(&problem);
  EXPECT_EQ(problem.name, "softmax_gradients");
  EXPECT_TRUE(problem.source.starts_with("class Model: pass\n"));
  EXPECT_TRUE(problem.source.ends_with("gradients.of_problem(globals())\n"));
  // They count forward alone.
  EXPECT_EQ(problem.flops + problem.bytes, "");
  EXPECT_EQ(problem.ragged.size(), 1u);
}

// A verdict's sources are kept as they were judged, and judged again with the same options.
TEST(Gradients, AFileThatHasThemStaysAsItIs) {
  ProblemRequest problem;
  problem.name = "softmax";
  AddGradients(&problem);
  const ProblemRequest once = problem;
  AddGradients(&problem);
  EXPECT_EQ(problem.source, once.source);
  EXPECT_EQ(problem.name, once.name);
  const std::string candidate = CandidateWithGradients("class ModelNew: pass");
  EXPECT_EQ(CandidateWithGradients(candidate), candidate);
  EXPECT_TRUE(candidate.ends_with("gradients.of_candidate(globals())\n"));
}

TEST(Gradients, CanBeTakenAwayAgain) {
  ProblemRequest problem;
  problem.name = "softmax";
  problem.source = "class Model: pass\n";
  AddGradients(&problem);
  EXPECT_TRUE(HasGradients(problem));
  EXPECT_EQ(SourceWithoutGradients(problem.source), "class Model: pass\n");
  EXPECT_EQ(NameWithoutGradients(problem.name), "softmax");
  EXPECT_EQ(SourceWithoutGradients("class Model: pass\n"), "class Model: pass\n");
}

}  // namespace
}  // namespace assay
