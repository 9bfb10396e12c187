#include "mine/mined.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mine/mine_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(MinedTest, LinesAreReadAsTheyWereWritten) {
  Mined mined = TestMined("k", "default", "code");
  mined.name = "softmax_default";
  const auto read = MinedFromJson(MinedToJson(mined));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->key, "k");
  EXPECT_EQ(read->name, "softmax_default");
  EXPECT_EQ(read->set, mined.set);
  EXPECT_EQ(read->code.triton_code, "code");
  EXPECT_THAT(read->code.libraries, ElementsAre("extern_kernels.mm"));
  EXPECT_EQ(read->code.versions.at("torch"), "2.11.0");

  Mined refused = TestMined("k", "default", "");
  refused.refusal = "it has 2 graphs";
  EXPECT_EQ(MinedFromJson(MinedToJson(refused))->refusal, "it has 2 graphs");
}

TEST(MinedTest, BrokenLinesAreNamed) {
  EXPECT_THAT(MinedFromJson("{").error().message, HasSubstr("not JSON"));
  EXPECT_THAT(MinedFromJson(R"({"schema":"assay.run/1"})").error().message,
              HasSubstr("its schema is not assay.mined/1"));
  EXPECT_THAT(MinedFromJson(R"({"schema":"assay.mined/1"})").error().message, HasSubstr("key"));
  const std::string line = MinedToJson(TestMined("k", "default", "code"));
  EXPECT_TRUE(IsMined(line));
  EXPECT_FALSE(IsMined(std::string_view(line).substr(0, line.size() / 2)));
}

TEST(MinedTest, KeysDifferByWhatTheCodeDependsOn) {
  ProblemRequest problem;
  problem.name = "softmax";
  problem.source = "class Model: pass";
  const std::string key = MineKey(problem, "default", "cpu", "python 2.11");
  EXPECT_EQ(MineKey(problem, "default", "cpu", "python 2.11"), key);
  EXPECT_NE(MineKey(problem, "max-autotune-no-cudagraphs", "cpu", "python 2.11"), key);
  EXPECT_NE(MineKey(problem, "default", "cuda", "python 2.11"), key);
  EXPECT_NE(MineKey(problem, "default", "cpu", "python 2.10"), key);
  problem.set["ROWS"] = "64";
  EXPECT_NE(MineKey(problem, "default", "cpu", "python 2.11"), key);
}

TEST(MinedTest, AnswersAreCodeRefusalsOrFailuresOfTheMachine) {
  EXPECT_EQ(MineAnswerFromJson(R"({"refusal": "it has 2 graphs"})")->refusal, "it has 2 graphs");
  EXPECT_EQ(MineAnswerFromJson(R"({"problem": "no Model"})")->refusal, "no Model");
  const auto none = MineAnswerFromJson(R"({"environment": "no torch.compile"})");
  EXPECT_EQ(none.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(none.error().message, "no torch.compile");
  EXPECT_EQ(MineAnswerFromJson(R"({"python_code": ""})").error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(MineAnswerFromJson("").error().kind, ErrorKind::kEnvironment);
}

}  // namespace
}  // namespace assay
