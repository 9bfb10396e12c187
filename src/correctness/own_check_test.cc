#include "correctness/own_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace assay {
namespace {

using ::testing::HasSubstr;

// Two rows of two indices each, as a slot would hold them.
class OwnCheckTest : public testing::Test {
 protected:
  CallCheck Check(const std::vector<int64_t>& given) {
    outputs_.resize(given.size() * sizeof(int64_t));
    std::memcpy(outputs_.data(), given.data(), outputs_.size());
    OutputView view;
    view.name = "out";
    view.dtype = DType::kInt64;
    view.shape = {2, 2};
    view.count = 4;
    view.candidate = outputs_.data();
    view.reference = reference_.data();
    return CheckByProblem({&view, 1}, outputs_, [this](std::span<const std::byte> outputs) {
      ++asked_;
      EXPECT_EQ(outputs.data(), outputs_.data());
      return answer_;
    });
  }

  std::vector<int64_t> reference_{0, 1, 2, 3};
  std::vector<std::byte> outputs_;
  HostResult<std::optional<std::string>> answer_ = std::nullopt;
  int asked_ = 0;
};

TEST_F(OwnCheckTest, TheReferencesBytesAreRightWithoutAsking) {
  answer_ = "never said";
  const CallCheck check = Check(reference_);
  EXPECT_TRUE(check.passed);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(check.elements, 4);
}

TEST_F(OwnCheckTest, AnotherAnswerIsRightIfTheCheckSaysSo) {
  EXPECT_TRUE(Check({1, 0, 3, 2}).passed);
  EXPECT_EQ(asked_, 1);
}

TEST_F(OwnCheckTest, TheSentenceOfTheCheckIsTheHint) {
  answer_ = "row 1: index 7 is out of range";
  const CallCheck check = Check({1, 0, 7, 2});
  EXPECT_FALSE(check.passed);
  EXPECT_TRUE(check.by_check);
  EXPECT_FALSE(check.mismatch.has_value());
  EXPECT_FALSE(check.trouble.has_value());
  EXPECT_EQ(check.error_ratio, std::numeric_limits<double>::infinity());
  EXPECT_EQ(check.hint, "the problem's check: row 1: index 7 is out of range");
}

TEST_F(OwnCheckTest, UnwrittenElementsAreWrongWhateverTheCheckSays) {
  int64_t poisoned;
  std::memset(&poisoned, 0xA5, sizeof(poisoned));
  const CallCheck check = Check({1, 0, poisoned, 2});
  EXPECT_FALSE(check.passed);
  EXPECT_THAT(check.hint, HasSubstr("never written"));
  EXPECT_EQ(asked_, 0);
}

TEST_F(OwnCheckTest, AnExceptionInTheCheckIsNotTheCandidates) {
  auto failed = HostFailed(HostTrouble::Kind::kFailed, "the problem's own check fails: IndexError");
  failed.error().failure = wire::Failure::kProblemCheck;
  answer_ = std::move(failed);
  const CallCheck check = Check({1, 0, 3, 2});
  EXPECT_FALSE(check.passed);
  EXPECT_FALSE(check.by_check);
  ASSERT_TRUE(check.trouble.has_value());
  EXPECT_EQ(check.trouble->failure, wire::Failure::kProblemCheck);
}

}  // namespace
}  // namespace assay
