#include "correctness/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A catalog of operators in lines 1, 2..., each with two mutants.
MutantCatalog CatalogOf(int operators) {
  MutantCatalog catalog;
  for (int i = 0; i < operators; ++i) {
    catalog.operators.push_back({.name = "add", .line = i + 1});
    for (const char* words : {"drops a term", "is left out"}) {
      MutantRecord mutant;
      mutant.family = "operator";
      mutant.words = words;
      mutant.operator_number = i;
      catalog.mutants.push_back(mutant);
      catalog.time_shares.push_back(0.125);
    }
  }
  return catalog;
}

// Draws on which some mutants pass, and some change nothing.
class FakeDraws {
 public:
  // The last ones are `unusual`.
  explicit FakeDraws(size_t draws, size_t unusual = 0) {
    steps_.kinds.assign(draws - unusual, "ordinary");
    steps_.kinds.resize(draws, "huge-scale");
    steps_.plain = draws - unusual;
    steps_.show = [this](size_t draw) -> HostResult<void> {
      shown_ = draw;
      return {};
    };
    steps_.run = [this](size_t mutant) -> HostResult<MutantOnDraw> {
      ran.push_back(mutant);
      const bool changed = !redundant.contains(mutant);
      return MutantOnDraw{changed, !changed || passing.contains({mutant, shown_})};
    };
    steps_.is_over = [this] { return ran.size() >= runs_most; };
  }
  const CoverageSteps& steps() const { return steps_; }

  std::set<std::pair<size_t, size_t>> passing;  // mutant, draw
  std::set<size_t> redundant;
  std::vector<size_t> ran;
  size_t runs_most = 1000;

 private:
  CoverageSteps steps_;
  size_t shown_ = 0;
};

TEST(CoverageTest, AMutantRunsUntilADrawShowsIt) {
  FakeDraws draws(3);
  draws.passing = {{0, 0}, {0, 1}};
  const auto coverage = CoverageOf(CatalogOf(1), draws.steps());
  ASSERT_TRUE(coverage);
  EXPECT_EQ(coverage->seen, 1);
  EXPECT_THAT(coverage->unseen, IsEmpty());
  EXPECT_THAT(draws.ran, ElementsAre(0, 1, 0, 0));
}

TEST(CoverageTest, AMutantThatPassesEveryDrawIsUnseen) {
  FakeDraws draws(2);
  draws.passing = {{3, 0}, {3, 1}};
  const auto coverage = CoverageOf(CatalogOf(2), draws.steps());
  ASSERT_TRUE(coverage);
  EXPECT_EQ(coverage->operators, 2);
  EXPECT_EQ(coverage->seen, 1);
  ASSERT_THAT(coverage->unseen, SizeIs(1));
  EXPECT_EQ(coverage->unseen[0].line, 2);
  EXPECT_EQ(coverage->unseen[0].mutant, "is left out");
  EXPECT_EQ(coverage->unseen[0].time_share, 0.125);
}

TEST(CoverageTest, AMutantThatUnusualDrawsAloneShowIsUnseen) {
  FakeDraws draws(3, 1);
  draws.passing = {{2, 0}, {2, 1}};
  MutantCatalog catalog = CatalogOf(2);
  catalog.time_shares[2] = 0.5;
  const auto coverage = CoverageOf(catalog, draws.steps());
  ASSERT_TRUE(coverage);
  EXPECT_EQ(coverage->seen, 1);
  ASSERT_THAT(coverage->unseen, SizeIs(1));
  EXPECT_EQ(coverage->unseen[0].line, 2);
  EXPECT_EQ(coverage->unseen[0].only_on, "huge-scale");
  EXPECT_EQ(coverage->unseen[0].time_share, 0.5);
}

TEST(CoverageTest, OfTwoHolesTheOneThatSavesMoreIsTold) {
  FakeDraws draws(2, 1);
  draws.passing = {{0, 0}, {1, 0}, {1, 1}};
  MutantCatalog catalog = CatalogOf(1);
  auto coverage = CoverageOf(catalog, draws.steps());
  ASSERT_TRUE(coverage);
  ASSERT_THAT(coverage->unseen, SizeIs(1));
  EXPECT_EQ(coverage->unseen[0].only_on, "");  // as much, and no draw shows it
  catalog.time_shares[0] = 0.5;
  coverage = CoverageOf(catalog, draws.steps());
  ASSERT_TRUE(coverage);
  ASSERT_THAT(coverage->unseen, SizeIs(1));
  EXPECT_EQ(coverage->unseen[0].only_on, "huge-scale");
}

TEST(CoverageTest, AnOperatorThatMayBeSkippedDoesNotCount) {
  FakeDraws draws(2);
  draws.redundant = {0, 1};
  const auto coverage = CoverageOf(CatalogOf(2), draws.steps());
  ASSERT_TRUE(coverage);
  EXPECT_EQ(coverage->operators, 1);
  EXPECT_EQ(coverage->seen, 1);
}

TEST(CoverageTest, EachOperatorHasItsTurnBeforeTheTimeEnds) {
  FakeDraws draws(2);
  draws.runs_most = 3;
  const auto coverage = CoverageOf(CatalogOf(3), draws.steps());
  ASSERT_TRUE(coverage);
  EXPECT_THAT(draws.ran, ElementsAre(0, 2, 4));
  EXPECT_EQ(coverage->operators, 3);
  EXPECT_EQ(coverage->not_tried, 3);
  EXPECT_EQ(coverage->seen, 0);
  EXPECT_THAT(coverage->unseen, IsEmpty());
}

TEST(CoverageTest, TroubleOfTheHostIsTheError) {
  FakeDraws draws(1);
  CoverageSteps steps = draws.steps();
  steps.run = [](size_t) -> HostResult<MutantOnDraw> {
    return HostFailed(HostTrouble::Kind::kEnvironment, "it ended");
  };
  EXPECT_FALSE(CoverageOf(CatalogOf(1), steps));
}

}  // namespace
}  // namespace assay
