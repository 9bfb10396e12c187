#include "run/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "run/rows.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

// A checkout with two levels and a run folder.
class Plans : public ::testing::Test {
 protected:
  Plans() : folder_(TemporaryFolder::Create().value()) {
    Write("KernelBench/level1/1_Square.py", "N = 1\n");
    Write("KernelBench/level1/23_Softmax.py", "dim = 1\n");
    Write("KernelBench/level2/1_Conv.py", "");
    request_.paths = {Path("run")};
    request_.problems = Path("");
  }
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }
  void Write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.path() / name) << text;
  }
  RunPlan Made() const {
    auto plan = MakeRunPlan(request_);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan.value_or(RunPlan{});
  }
  std::string Refusal() const {
    const auto plan = MakeRunPlan(request_);
    return plan ? "none" : plan.error().message;
  }
  static std::vector<std::string> Lines(const RunPlan& plan) {
    std::vector<std::string> lines;
    for (const RunItem& item : plan.items)
      lines.push_back(fmt::format("{}/{} #{}", plan.problems[item.problem].level,
                                  plan.problems[item.problem].name, item.sample));
    return lines;
  }

  TemporaryFolder folder_;
  PlanRequest request_;
};

TEST_F(Plans, AKernelBenchRunFolderAsItLies) {
  Write("run/level_2_problem_1_sample_0_kernel.py", "a");
  Write("run/level_1_problem_23_sample_10_kernel.py", "b");
  Write("run/level_1_problem_23_sample_2_kernel.py", "c");
  Write("run/level_1_problem_1_sample_0_kernel.py", "d");
  Write("run/level_1_problem_1_sample_0_prompt.txt", "not a candidate");
  Write("run/generation_config.yaml", "");
  Write("run/helper.py", "no sample either");
  const RunPlan plan = Made();
  EXPECT_THAT(Lines(plan),
              ElementsAre("1/1_Square #0", "1/23_Softmax #2", "1/23_Softmax #10", "2/1_Conv #0"));
  EXPECT_THAT(plan.troubles, IsEmpty());
  EXPECT_EQ(plan.problems.size(), 3u);
  request_.only = "level_1_problem_2*";
  EXPECT_THAT(Lines(Made()), ElementsAre("1/23_Softmax #2", "1/23_Softmax #10"));
}

TEST_F(Plans, AFolderWithASamplesNameIsOneCandidate) {
  Write("run/level_1_problem_23_sample_0_kernel.py", "a");
  Write("run/level_1_problem_23_sample_1_kernel/candidate.py", "class ModelNew: pass\n");
  Write("run/level_1_problem_23_sample_1_kernel/softmax.py", "x = 1\n");
  const RunPlan plan = Made();
  EXPECT_THAT(Lines(plan), ElementsAre("1/23_Softmax #0", "1/23_Softmax #1"));
  EXPECT_THAT(plan.troubles, IsEmpty());
}

TEST_F(Plans, TakesAnswersThatNameTheirProblem) {
  const std::string answer = "Here it is:\n```python\nclass ModelNew: pass\n```\n";
  Write("run/23_Softmax_1.md", answer);
  Write("run/23_Softmax_2.txt", answer);
  Write("run/23_Softmax_2.py", "class ModelNew: pass\n");  // the code of that answer
  Write("run/1_Square.md", "Squares are even.\n");
  Write("run/README.md", answer);
  Write("run/1_Conv/notes.md", answer);
  const RunPlan plan = Made();
  EXPECT_THAT(Lines(plan), ElementsAre("1/23_Softmax #1", "1/23_Softmax #2"));
  EXPECT_THAT(plan.troubles, IsEmpty());
  EXPECT_EQ(plan.items[0].source.content, "class ModelNew: pass\n");
  EXPECT_THAT(plan.items[0].source.note, HasSubstr("a model's answer"));
  request_.paths = {Path("run/README.md")};
  EXPECT_THAT(Made().troubles, ElementsAre(HasSubstr("its name says no problem")));
  Write("manifest.jsonl", "{\"candidate\": \"run/README.md\", \"problem\": \"1_Square\"}\n");
  request_.paths = {Path("manifest.jsonl")};
  EXPECT_THAT(Lines(Made()), ElementsAre("1/1_Square #0"));
}

TEST_F(Plans, WhatCannotBeJudgedIsNamedAndTheRestGoesOn) {
  Write("run/level_1_problem_23_sample_0_kernel.py", "a");
  Write("run/level_1_problem_9_sample_0_kernel.py", "b");
  Write("run/level_2_problem_1_sample_0_kernel.py", "c");
  Write("run/level_2_problem_1_sample_0_kernel.cpp", "d");
  const RunPlan plan = Made();
  EXPECT_THAT(Lines(plan), ElementsAre("1/23_Softmax #0"));
  EXPECT_THAT(plan.troubles,
              ElementsAre(HasSubstr("has no problem 9 of level 1"),
                          HasSubstr("are both sample 0 of 1_Conv: remove or rename one")));
}

TEST_F(Plans, CandidatesAreNamedAsTheirProblems) {
  request_.problems = Path("KernelBench/level1");
  Write("run/23_Softmax.py", "a");
  Write("run/23_Softmax_3.cpp", "b");
  Write("run/23_Softmax_sample4.py", "c");
  Write("run/1_Square/tiled.py", "d");
  Write("run/1_Square/naive.py", "e");
  Write("run/other.py", "f");
  const RunPlan plan = Made();
  EXPECT_THAT(Lines(plan), ElementsAre("0/1_Square #0", "0/1_Square #1", "0/23_Softmax #0",
                                       "0/23_Softmax #3", "0/23_Softmax #4"));
  EXPECT_THAT(plan.items[0].source.path, HasSubstr("naive.py"));
  EXPECT_THAT(plan.troubles, ElementsAre(HasSubstr("its name says no problem")));
}

TEST_F(Plans, AManifestPairsByLines) {
  Write("mine.py", "a");
  Write("run.jsonl",
        R"({"candidate": "mine.py", "problem": "KernelBench/level1/1_Square.py", "sample": 7})"
        "\nnonsense\n\n"
        R"({"candidate": "mine.py", "problem": "23_Softmax", "set": {"dim": 64}})"
        "\n"
        R"({"candidate": "mine.py", "problem": "23_Softmax", "sise": "small"})"
        "\n"
        R"({"candidate": "gone.py", "problem": "23_Softmax"})"
        "\n"
        R"({"candidate": "mine.py", "problem": "24_None"})");
  request_.paths = {Path("run.jsonl")};
  const RunPlan plan = Made();
  EXPECT_THAT(Lines(plan), ElementsAre("0/1_Square #7", "1/23_Softmax #0"));
  EXPECT_EQ(plan.problems[plan.items[1].problem].choice.set.at("dim"), "64");
  EXPECT_THAT(plan.troubles,
              ElementsAre(HasSubstr("run.jsonl line 2: this is not JSON; each line is an object"),
                          HasSubstr("line 5: \"sise\" is no field"), HasSubstr("line 6: "),
                          HasSubstr("line 7: no problem '24_None'")));
}

TEST_F(Plans, AManifestThatIsNoneIsToldSoOnce) {
  for (const char* text :
       {"[{\"candidate\": \"a.py\"}]", "[\n1\n]\n", "{\n\"candidate\": 1\n}\n"}) {
    Write("run.jsonl", text);
    request_.paths = {Path("run.jsonl")};
    EXPECT_THAT(Refusal(), HasSubstr("run.jsonl is one JSON document; in a manifest each line"))
        << text;
  }
  Write("run.json", "[]");
  request_.paths = {Path("run.json")};
  EXPECT_THAT(Refusal(), HasSubstr("no manifest: that has the ending .jsonl, and each line is an"));
  Write("one.jsonl", R"({"candidate": 1, "problem": "1_Square"})"
                     "\n"
                     R"({"sample": "x"})"
                     "\n[]\n"
                     R"({"problem": "1_Square"})"
                     "\n");
  request_.paths = {Path("one.jsonl")};
  EXPECT_THAT(Made().troubles,
              ElementsAre(HasSubstr("line 1: the value of \"candidate\" is no text"),
                          HasSubstr("line 2: the value of \"sample\" is no whole number"),
                          HasSubstr("line 3: this is JSON, but no object; each line is"),
                          HasSubstr("line 4: it names no candidate")));
}

TEST_F(Plans, SizesComeFromAFile) {
  Write("run/level_1_problem_23_sample_0_kernel.py", "a");
  Write("sizes.toml", "[level1]\n23_Softmax = { dim = 4096, shape = [2, 3] }\n");
  request_.sizes = Path("sizes.toml");
  const RunPlan plan = Made();
  EXPECT_EQ(plan.problems[0].choice.set.at("dim"), "4096");
  EXPECT_EQ(plan.problems[0].choice.set.at("shape"), "[2, 3]");
  Write("sizes.toml", "[level1]\n23_Softmax = 4\n");
  EXPECT_THAT(Refusal(), HasSubstr("sizes.toml line 2: a size is written"));
}

TEST_F(Plans, GradientsAreOtherProblemsAndOtherWork) {
  Write("run/level_1_problem_23_sample_0_kernel.py", "class ModelNew: pass\n");
  Write("run/level_1_problem_23_sample_1_kernel.cpp", "int kernel;\n");
  const RunPlan without = Made();
  request_.gradients = true;
  const RunPlan with = Made();
  EXPECT_THAT(Lines(with), ElementsAre("1/23_Softmax_gradients #0", "1/23_Softmax_gradients #1"));
  EXPECT_TRUE(with.problems[0].choice.gradients);
  EXPECT_NE(with.problems[0].hash, without.problems[0].hash);
  // As it is judged, so that a verdict's hash is that of the source which is kept.
  EXPECT_TRUE(with.items[0].source.content.ends_with("gradients.of_candidate(globals())\n"));
  EXPECT_EQ(with.items[0].source.path, without.items[0].source.path);
  EXPECT_EQ(with.items[1].source.content, "int kernel;\n");
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NE(RunKey(with, with.items[i], "{}"), RunKey(without, without.items[i], "{}"));
}

TEST_F(Plans, RefusalsSayWhatToGive) {
  EXPECT_THAT(Refusal(), HasSubstr("there is no "));
  fs::create_directories(Path("run"));
  EXPECT_THAT(Refusal(), HasSubstr("no candidate in "));
  Write("run/level_1_problem_23_sample_0_kernel.py", "a");
  request_.only = "*.cu";
  EXPECT_THAT(Refusal(), HasSubstr("that fits --only *.cu"));
  request_.only = "";
  request_.problems = "";
  EXPECT_THAT(Refusal(), HasSubstr("name its checkout with --problems"));
  request_.problems = Path("gone");
  EXPECT_THAT(Refusal(), HasSubstr("there is no such folder"));
  request_.problems = Path("run/empty");
  fs::create_directories(Path("run/empty"));
  EXPECT_THAT(Refusal(), HasSubstr("it holds no problem"));
}

TEST(SampleNames, AreKernelBenchs) {
  const auto name = ParseSampleName("level_2_problem_17_sample_3_kernel.py");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->level, 2);
  EXPECT_EQ(name->problem, 17);
  EXPECT_EQ(name->sample, 3);
  for (const char* other :
       {"level_2_problem_17_sample_3.py", "level_x_problem_1_sample_0_kernel.py",
        "level_1_problem_1_sample_-1_kernel.py", "level_1_problem_1_sample_1_kernels", "",
        "level_"})
    EXPECT_FALSE(ParseSampleName(other)) << other;
}

}  // namespace
}  // namespace assay
