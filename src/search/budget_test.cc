#include "search/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const auto limits = ParseBudget(text);
  return limits ? "none" : limits.error().message;
}

TEST(Budget, IsReadFromText) {
  const auto limits = ParseBudget("evals=60,usd=2.5,tokens=1e5,seconds=600");
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(*limits, (Spending{2.5, 100000, 60, 600}));
  EXPECT_EQ(*ParseBudget("usd=1"), (Spending{1, 0, 0, 0}));
}

TEST(Budget, SaysHowItIsWritten) {
  for (const char* wrong : {"", "60", "evals", "evals=", "evals=0", "evals=-1", "evals=1.5",
                            "evals=x", "evals=5x", "hours=1", "evals=1,", "usd=nan", "usd=1e99"})
    EXPECT_THAT(ErrorOf(wrong), HasSubstr("evals=60,usd=2")) << wrong;
}

TEST(BudgetLedger, ReservesThenSettles) {
  BudgetLedger ledger({1, 0, 3, 0});
  const Spending call{0.4, 100, 1, 0};
  EXPECT_TRUE(ledger.Fits(call));
  ledger.Reserve(call);
  ledger.Reserve(call);
  EXPECT_FALSE(ledger.Fits(call));       // 1.2 USD
  ledger.Settle(call, {0.1, 50, 1, 0});  // it was cheaper than feared
  EXPECT_TRUE(ledger.Fits(call));
  EXPECT_FALSE(ledger.Fits(call, {0, 0, 1, 0}));  // one evaluation is kept
  ledger.Book(call);
  EXPECT_FALSE(ledger.Fits({0, 0, 1, 0}));
  EXPECT_EQ(ledger.spent(), (Spending{0.5, 150, 2, 0}));
  EXPECT_EQ(ledger.reserved(), call);
}

TEST(BudgetLedger, TimeEndsByItself) {
  BudgetLedger ledger({0, 0, 0, 10});
  EXPECT_TRUE(ledger.Fits({0, 0, 1, 0}));
  EXPECT_FALSE(ledger.Fits({0, 0, 1, 0}, {0, 0, 0, 10}));
  ledger.SetSeconds(10);
  EXPECT_FALSE(ledger.Fits({0, 0, 1, 0}));
}

TEST(BudgetLedger, WithoutALimitEverythingFits) {
  EXPECT_TRUE(BudgetLedger({}).Fits({1e9, 1'000'000'000, 1'000'000'000, 0}));
}

}  // namespace
}  // namespace assay
