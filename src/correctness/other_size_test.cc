#include "correctness/other_size.h"

#include <gtest/gtest.h>

#include <memory>
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
    const auto set = DrawSizes(problem, seed, 1).at(0);
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

// A GEMM read the wrong buffer after an odd number of tiles, and groups of four launched nothing
// for fewer rows than four: both were right at the one size that was judged.
TEST(OtherSize, ThreeSizesHoldOddTilesAndLessThanAVector) {
  int odd_tiles = 0, shorts = 0, neighbours = 0;
  constexpr int kSeeds = 200;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    ProblemRequest problem = Softmax();
    const auto sizes = DrawSizes(problem, seed, 3);
    ASSERT_EQ(std::set(sizes.begin(), sizes.end()).size(), sizes.size()) << "all differ";
    bool odd = false, is_short = false, neighbour = false;
    for (const auto& set : sizes) {
      const int row = std::stoi(set.at("ROWS")), column = std::stoi(set.at("COLUMNS"));
      odd = odd || (column + 15) / 16 % 2 == 1;
      is_short = is_short || row < 4 || column < 4;
      neighbour = neighbour || row == 63 || row == 65 || column == 1023 || column == 1025;
    }
    odd_tiles += odd;
    shorts += is_short;
    neighbours += neighbour;
  }
  EXPECT_GT(odd_tiles, kSeeds * 3 / 4);
  EXPECT_GT(shorts, kSeeds * 9 / 10);
  EXPECT_GT(neighbours, kSeeds / 2);
}

TEST(OtherSize, ARangeOfOneValueThatIsJudgedAlreadyIsNoOtherSize) {
  ProblemRequest problem;
  problem.set = {{"N", "5"}};
  problem.ragged = {{"N", {5, 5}}};
  EXPECT_TRUE(DrawSizes(problem, 7, 3).empty());
}

TEST(OtherSize, ASeedGivesTheSameSize) {
  EXPECT_EQ(DrawSizes(Softmax(), 7, 3), DrawSizes(Softmax(), 7, 3));
}

TEST(OtherSize, AProblemWithoutRangesHasOneSize) {
  ProblemRequest problem = Softmax();
  problem.ragged.clear();
  EXPECT_TRUE(DrawSizes(problem, 7, 3).empty());
}

TEST(OtherSize, OtherArgumentsAreMoreThanOtherShapes) {
  const auto a = std::make_unique<wire::Plan>(), b = std::make_unique<wire::Plan>();
  a->argument_count = b->argument_count = 2;
  for (uint32_t i = 0; i < 2; ++i) a->arguments[i].rank = b->arguments[i].rank = 2;
  b->arguments[1].shape[0] = 7;
  EXPECT_FALSE(HasOtherArguments(*a, *b));
  b->arguments[1].rank = 3;
  EXPECT_TRUE(HasOtherArguments(*a, *b));
  b->arguments[1].rank = 2;
  b->argument_count = 1;
  EXPECT_TRUE(HasOtherArguments(*a, *b));
}

}  // namespace
}  // namespace assay
