#include "report/problem_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Inspection Looked() {
  Inspection inspection;
  WorkAccount& account = inspection.account;
  account.inputs = {"x float32[4, 8]"};
  account.outputs = {"out float32[4, 8]"};
  account.forward_known = true;
  account.operators = {{"exp", 1, 32, 128, 128}, {"mm", 2, 4096, 4000, 1000}};
  inspection.input_bytes = inspection.output_bytes = 128;
  return inspection;
}

ProblemCard CardOf(const Inspection& inspection) {
  ProblemCard card{{}, "fusion", "a lesson", inspection, {}, std::nullopt, 1};
  card.request.name = card.request.path = "small_chain";
  card.request.size = "tiny";
  card.request.level = 2;
  card.work = {4128, "counted", 256, 128, "signature", 5256, 0};
  return card;
}

TEST(JoinOperators, WithoutAProfileTheMostBytesComeFirst) {
  const auto lines = JoinOperators(Looked().account, std::nullopt);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].name, "mm");
  EXPECT_FALSE(lines[0].time_share);
}

TEST(JoinOperators, SharesAndHeadroomFollowAmdahl) {
  const Profile profile{1000, {{"mm", 2, 750}, {"exp", 1, 200}, {"view", 3, 49}, {"t", 1, 1}}};
  const auto lines = JoinOperators(Looked().account, profile);
  ASSERT_EQ(lines.size(), 3U);  // a thousandth of the time that nobody counted is left out
  EXPECT_EQ(lines[0].name, "mm");
  EXPECT_DOUBLE_EQ(*lines[0].time_share, 0.75);
  EXPECT_DOUBLE_EQ(*lines[0].headroom, 4);
  EXPECT_DOUBLE_EQ(*lines[1].headroom, 1.25);
  EXPECT_EQ(lines[2].name, "view");
  EXPECT_FALSE(lines[2].operations);
}

TEST(RenderProblem, SaysWhatOneCallDoesAndWhatBoundsIt) {
  const Inspection inspection = Looked();
  ProblemCard card = CardOf(inspection);
  const std::string unknown = RenderProblem(card, {});
  EXPECT_THAT(unknown, HasSubstr("run assay doctor once"));
  EXPECT_THAT(unknown, HasSubstr("20.5x as many"));
  EXPECT_THAT(unknown, HasSubstr("4.13 K (counted)"));
  EXPECT_THAT(unknown, HasSubstr("--profile"));
  Roofline bound;
  bound.bandwidth_bytes_s = 10e9;
  bound.bound_ns = 25.6;
  bound.regime = "memory";
  card.bound = bound;
  EXPECT_THAT(RenderProblem(card, {}), HasSubstr("memory, at 10 GB/s"));
  card.work.operations_from = "unknown";
  EXPECT_THAT(RenderProblem(card, {}), HasSubstr("cannot be followed"));
}

TEST(RenderProblem, WithoutElementsNothingIsDividedByThem) {
  const Inspection inspection = Looked();
  ProblemCard card = CardOf(inspection);
  card.work = {0, "counted", 0, 0, "signature", 0, 0};
  const std::string text = RenderProblem(card, {});
  EXPECT_THAT(text, HasSubstr("(counted)"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("a byte")));
}

TEST(RenderProblem, EveryLineFitsTheWidth) {
  const Inspection inspection = Looked();
  for (const int width : {60, 80, 100}) {
    const std::string text = RenderProblem(CardOf(inspection), {false, false, width});
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      EXPECT_LE(end - at, static_cast<size_t>(width)) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(RenderProblemList, GroupsByLevelAndNamesTheSizes) {
  SuiteProblem softmax, block;
  softmax.name = "softmax";
  softmax.level = 1;
  softmax.mechanism = "reduction";
  softmax.lesson = "a row at a time";
  softmax.sizes = {{"tiny", {}}, {"small", {}}};
  block.name = "block";
  block.level = 3;
  const std::string text = RenderProblemList({{"suite", "", "", {softmax, block}}}, {});
  EXPECT_THAT(text, HasSubstr("suite: 2 problems; sizes: small, tiny"));
  EXPECT_THAT(text, HasSubstr("level 1\n  softmax  reduction  a row at a time\n"));
  EXPECT_THAT(text, HasSubstr("level 3\n  block"));
  EXPECT_THAT(text, Not(HasSubstr("level 2")));
}

}  // namespace
}  // namespace assay
