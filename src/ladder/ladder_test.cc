#include "ladder/ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "ladder/ladder_testing.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr const char* kWhole = R"(title = "Steps"
problem = "softmax"
device = "cpu"
bound = "memory"
also_against = ["compiled", "eager"]

[[size]]
set = {ROWS = 8, COLUMNS = 4}

[[rung]]
file = "01_naive.cpp"
idea = "a loop"
predicted_percent_of_library = 0.5
)";

std::string With(std::string_view old_text, std::string_view new_text) {
  std::string text(kWhole);
  return text.replace(text.find(old_text), old_text.size(), new_text);
}

std::string FaultOf(const std::string& text) {
  const auto ladder = ParseLadder(text, "steps", "ladder.toml");
  return ladder ? "none" : ladder.error().message;
}

TEST(Ladder, EveryKeyIsRead) {
  const auto ladder = ParseLadder(kWhole, "kernels/steps", "ladder-cpu.toml");
  ASSERT_TRUE(ladder) << ladder.error().message;
  EXPECT_EQ(ladder->name, "steps");
  EXPECT_EQ(ladder->Path(), "kernels/steps/ladder-cpu.toml");
  EXPECT_THAT(ladder->Baselines(), ElementsAre("eager", "compiled"));
  EXPECT_THAT(ladder->sizes, ElementsAre(ElementsAre(Pair("ROWS", "8"), Pair("COLUMNS", "4"))));
  ASSERT_EQ(ladder->rungs.size(), 1u);
  EXPECT_EQ(ladder->rungs[0].number, 1);
  EXPECT_EQ(ladder->rungs[0].Stem(), "01_naive");
  EXPECT_EQ(ladder->rungs[0].UnnumberedFile(), "naive.cpp");
  EXPECT_EQ(ladder->rungs[0].predicted_percent, 0.5);
}

TEST(Ladder, FaultsNameFileLineKeyAndRemedy) {
  EXPECT_EQ(FaultOf(With("\"cpu\"", "\"gpu\"")),
            "steps/ladder.toml line 3: device: write \"cpu\" or \"cuda\"");
  EXPECT_THAT(FaultOf(With("bound", "bond")), HasSubstr("bond: no such key; did you mean 'bound'"));
  EXPECT_THAT(FaultOf(With("idea = \"a loop\"\n", "")), HasSubstr("line 10: idea: is missing"));
  EXPECT_THAT(FaultOf(With("= 0.5", "= \"half\"")),
              HasSubstr("line 13: predicted_percent_of_library: write a number"));
  EXPECT_THAT(FaultOf(With("01_naive.cpp", "naive.cpp")), HasSubstr("as \"01_naive.cpp\""));
  EXPECT_THAT(FaultOf(With("01_naive.cpp", "01_/../../x.cpp")), HasSubstr("line 11: file"));
  EXPECT_THAT(FaultOf(With("{ROWS = 8, COLUMNS = 4}", "{}")), HasSubstr("line 8: set"));
  EXPECT_THAT(FaultOf(With("ROWS = 8", "ROWS = \"8\"")), HasSubstr("is a number"));
  EXPECT_THAT(FaultOf(With("[[rung]]", "[[ring]]")), HasSubstr("did you mean 'rung'"));
  EXPECT_THAT(FaultOf(With("[\"compiled\", \"eager\"]", "[1]")), HasSubstr("also_against"));
  EXPECT_EQ(FaultOf(With("\"eager\"]", "\"best\"]")),
            "steps/ladder.toml line 5: also_against: write \"best\" as baseline: it measures all "
            "baselines, and also_against names columns");
  EXPECT_EQ(FaultOf(With("bound", "baseline = \"best\"\nbound")), "none");
  EXPECT_THAT(FaultOf("title = "), HasSubstr("not TOML"));
  const std::string twice =
      kWhole + std::string(kWhole).substr(std::string_view(kWhole).find("[[rung]]"));
  EXPECT_THAT(FaultOf(twice), HasSubstr("two rungs are one file"));
}

TEST(Ladder, FilesAreFoundInFoldersAndTheirRungsMustBeThere) {
  const auto folder = TemporaryFolder::Create().value();
  const std::filesystem::path below = folder.path() / "b" / "steps";
  std::filesystem::create_directories(below);
  std::ofstream(below / "ladder.toml") << kWhole;
  std::ofstream(below / "ladder-gpu.toml") << With("\"cpu\"", "\"cuda\"");
  const auto without = FindLadders(folder.path().string());
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message,
              HasSubstr("there is no " + (below / "01_naive.cpp").string()));
  std::ofstream(below / "01_naive.cpp") << "\n";
  const auto ladders = FindLadders(folder.path().string());
  ASSERT_TRUE(ladders) << ladders.error().message;
  ASSERT_EQ(ladders->size(), 2u);
  EXPECT_EQ((*ladders)[0].device, "cuda");
  EXPECT_EQ(FindLadders((below / "ladder.toml").string())->size(), 1u);
  EXPECT_THAT(FindLadders((folder.path() / "no").string()).error().message,
              HasSubstr("name a folder"));
  std::filesystem::create_directories(folder.path() / "empty");
  EXPECT_THAT(FindLadders((folder.path() / "empty").string()).error().message,
              HasSubstr("has no ladder.toml"));
}

TEST(Ladder, RungsAreChosenByNumbersAndRanges) {
  Ladder ladder = TestLadder();
  ladder.rungs = {};
  for (int i = 1; i <= 9; ++i) ladder.rungs.push_back({fmt::format("0{}_x.cpp", i), i, "", 0});
  const auto numbers = [&](const std::string& only) {
    std::vector<int> found;
    const auto rungs = ChooseRungs(ladder, only);
    if (rungs)
      for (const Rung& rung : *rungs) found.push_back(rung.number);
    return found;
  };
  EXPECT_EQ(numbers("").size(), 9u);
  EXPECT_THAT(numbers("03,05:07"), ElementsAre(3, 5, 6, 7));
  EXPECT_THAT(numbers(":02,08:"), ElementsAre(1, 2, 8, 9));
  for (const char* wrong : {"x", "3-5", ",", "1,,2", "-1", "40"})
    EXPECT_THAT(numbers(wrong), ElementsAre()) << wrong;
  EXPECT_THAT(ChooseRungs(ladder, "40").error().message, HasSubstr("its numbers are 1 to 9"));
}

// All ladders of the repository can be judged.
TEST(Ladder, ThoseOfTheRepositoryAreSound) {
  const auto ladders = FindLadders(std::string(ASSAY_SOURCE_DIRECTORY) + "/kernels");
  ASSERT_TRUE(ladders) << ladders.error().message;
  EXPECT_GE(ladders->size(), 15u);
}

}  // namespace
}  // namespace assay
