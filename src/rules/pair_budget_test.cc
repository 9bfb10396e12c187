#include "rules/pair_budget.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(IsOutOfBudget, TheFirstPairsRunAsLongAsAnyTimeIsLeft) {
  EXPECT_FALSE(IsOutOfBudget(1, 60, 0.1, 0));
  EXPECT_TRUE(IsOutOfBudget(1, 60, 0, 0));
}

TEST(IsOutOfBudget, PairsThatCannotDecideAreNotBegun) {
  const int coming = PairsUntilDecision(3);
  // A second a pair.
  EXPECT_FALSE(IsOutOfBudget(3, 3 + coming + 0.1, coming + 0.1, 0));
  EXPECT_TRUE(IsOutOfBudget(3, 3 + coming - 0.1, coming - 0.1, 0));
}

// Hosts of the first pairs start beside gate 1. Those of later ones start within gate 2, and once
// did so for three seconds, six of them, to leave time for one pair that decided nothing.
TEST(IsOutOfBudget, HostsThatStartedBeforeCountAsThePairsOwn) {
  EXPECT_FALSE(IsOutOfBudget(3, 5, 3.4, 0));
  EXPECT_TRUE(IsOutOfBudget(3, 5, 3.4, 2));
  EXPECT_FALSE(IsOutOfBudget(3, 60, 58.5, 2));
}

// Hosts start three at a time until the first look, which pairs that agree do not need.
TEST(PairsUntilDecision, GoesByThreesToTheFirstLook) {
  EXPECT_EQ(PairsUntilDecision(0), 3);
  EXPECT_EQ(PairsUntilDecision(3), 3);
  EXPECT_EQ(PairsUntilDecision(5), 1);
  EXPECT_EQ(PairsUntilDecision(6), 3);
  EXPECT_EQ(PairsUntilDecision(9), 5);
  EXPECT_EQ(PairsUntilDecision(32), 1);
}

// Three pairs of 1.2 s: fourteen of them, and a quarter to spare.
TEST(BudgetForDecision, HasRoomForTheLooksToCome) {
  EXPECT_EQ(BudgetForDecision(3, 3.6), 25);
  EXPECT_EQ(BudgetForDecision(14, 14), 40);
  EXPECT_EQ(BudgetForDecision(1, 9), 160);
}

}  // namespace
}  // namespace assay
