#include "correctness/other_size.h"

#include <gtest/gtest.h>

#include <set>

namespace assay {
namespace {

ProblemRequest Softmax() {
  ProblemRequest problem;
  problem.set = {{"ROWS", "64"}, {"COLUMNS", "1024"}, {"DTYPE", "'float32'"}};
  problem.ragged = {{"ROWS", {1, 67}}, {"COLUMNS", {2, 1031}}};
  return problem;
}

TEST(OtherSize, ConstantsLieInTheirRangesAndOthersStay) {
  const ProblemRequest problem = Softmax();
  std::set<int> rows;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const auto set = DrawSizes(problem, seed);
    ASSERT_EQ(set.size(), 3u);
    EXPECT_EQ(set.at("DTYPE"), "'float32'");
    const int row = std::stoi(set.at("ROWS")), column = std::stoi(set.at("COLUMNS"));
    EXPECT_TRUE(1 <= row && row <= 67) << row;
    EXPECT_TRUE(2 <= column && column <= 1031) << column;
    rows.insert(row);
  }
  EXPECT_TRUE(rows.contains(1) && rows.contains(67)) << "the ends come up";
  EXPECT_GT(rows.size(), 40u);
}

TEST(OtherSize, ASeedGivesTheSameSize) {
  EXPECT_EQ(DrawSizes(Softmax(), 7), DrawSizes(Softmax(), 7));
}

TEST(OtherSize, AProblemWithoutRangesHasOneSize) {
  ProblemRequest problem = Softmax();
  problem.ragged.clear();
  EXPECT_TRUE(DrawSizes(problem, 7).empty());
}

}  // namespace
}  // namespace assay
