#include "answer/code_of_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"

namespace assay {
namespace {

using testing::HasSubstr;

const std::string kKernel =
    "#include <assay/kernel.h>\nASSAY_KERNEL(assay::Tensor<float, 1> y) {\n  y(0) = 1;\n}\n";
const std::string kPython =
    "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return "
    "x\n";
const std::string kDevice =
    "//! launch twice grid=(n) block=(256) args=(x, y)\n__global__ void twice() {}\n";

std::string Block(const std::string& code, const std::string& language = "cpp") {
  return "```" + language + "\n" + code + "```\n";
}

std::string SourceOf(const std::string& answer, CodeForm wanted = CodeForm::kAny,
                     std::string_view parent = {}) {
  const auto code = CodeOfAnswer(answer, wanted, parent);
  return code ? code->source : "error: " + code.error();
}

TEST(CodeOfAnswer, TakesAFencedBlock) {
  const auto code =
      CodeOfAnswer("Here it is:\n" + Block(kKernel) + "It is fast.", CodeForm::kNative);
  ASSERT_TRUE(code) << code.error();
  EXPECT_EQ(code->source, kKernel);
  EXPECT_EQ(code->form, CodeForm::kNative);
  EXPECT_EQ(code->language, "cpp");
  EXPECT_FALSE(code->is_cut_off || code->is_edited);
  EXPECT_EQ(SourceOf(Block(kPython, "python")), kPython);
  EXPECT_EQ(SourceOf(Block(kDevice, "cuda")), kDevice);
  EXPECT_EQ(SourceOf(Block(kKernel, "")), kKernel);
}

TEST(CodeOfAnswer, KnowsFences) {
  EXPECT_EQ(SourceOf("~~~c++\n" + kKernel + "~~~"), kKernel);
  EXPECT_EQ(SourceOf("````cpp title=x\n" + kKernel + "// ```\n````"), kKernel + "// ```\n");
  EXPECT_EQ(SourceOf("```cpp\r\nASSAY_KERNEL() {\r\n}\r\n```\r\n"), "ASSAY_KERNEL() {\n}\n");
  // Within a list, and within a document that is fenced as a whole.
  EXPECT_EQ(SourceOf("1. this\n   ```cpp\n   ASSAY_KERNEL() {\n     x;\n   }\n   ```\n"),
            "ASSAY_KERNEL() {\n  x;\n}\n");
  EXPECT_EQ(SourceOf("```markdown\n# Kernel\n" + Block(kKernel) + "```\n"), kKernel);
}

TEST(CodeOfAnswer, PrefersTheLastWholeBlockOfTheWantedForm) {
  const std::string better = kKernel + "// better\n";
  EXPECT_EQ(SourceOf(Block(kKernel) + "No, wait.\n" + Block(better) + Block("make\n", "sh")),
            better);
  // An excerpt after the whole file.
  EXPECT_EQ(SourceOf(Block(better) + "where\n" + Block("ASSAY_KERNEL(...)\n")), better);
  EXPECT_EQ(SourceOf(Block(kKernel) + Block(kPython), CodeForm::kNative), kKernel);
  EXPECT_EQ(SourceOf(Block(kKernel) + Block(kPython), CodeForm::kPython), kPython);
}

TEST(CodeOfAnswer, LeavesReasoningOut) {
  EXPECT_EQ(SourceOf("<think>maybe\n" + Block("ASSAY_KERNEL() { draft; }\n") + "</think>\n" +
                     Block(kKernel)),
            kKernel);
  EXPECT_EQ(
      SourceOf("maybe " + Block("ASSAY_KERNEL() { draft; }\n") + "</think>\n" + Block(kKernel)),
      kKernel);
  EXPECT_THAT(SourceOf("<think>on and on"), HasSubstr("reasoning alone"));
}

TEST(CodeOfAnswer, TakesABlockThatTheLengthLimitCutOff) {
  const auto code = CodeOfAnswer("```cpp\n" + kKernel, CodeForm::kNative);
  ASSERT_TRUE(code) << code.error();
  EXPECT_EQ(code->source, kKernel);
  EXPECT_TRUE(code->is_cut_off);
}

TEST(CodeOfAnswer, TakesCodeWithoutFences) {
  EXPECT_EQ(SourceOf(kKernel), kKernel);
  EXPECT_EQ(SourceOf("Here is the kernel.\n\n" + kKernel + "\nIt uses one thread.\n"), kKernel);
  EXPECT_EQ(SourceOf("Sure. From here on:\n" + kPython + "\nThis returns x.\n"), kPython);
  EXPECT_EQ(SourceOf(kDevice, CodeForm::kDevice), kDevice);
}

TEST(CodeOfAnswer, AppliesEditsToTheParent) {
  const std::string diff =
      "--- a\n+++ b\n@@ -2,3 +2,3 @@\n ASSAY_KERNEL(assay::Tensor<float, 1> y) "
      "{\n-  y(0) = 1;\n+  y(0) = 2;\n }\n";
  const auto code =
      CodeOfAnswer("Change one line:\n" + Block(diff, "diff"), CodeForm::kNative, kKernel);
  ASSERT_TRUE(code) << code.error();
  EXPECT_THAT(code->source, HasSubstr("y(0) = 2;"));
  EXPECT_TRUE(code->is_edited);
  EXPECT_THAT(SourceOf(diff, CodeForm::kNative, kKernel), HasSubstr("y(0) = 2;"));
  EXPECT_THAT(SourceOf("<<<<<<< SEARCH\n  y(0) = 1;\n=======\n  y(0) = 3;\n>>>>>>> REPLACE\n",
                       CodeForm::kNative, kKernel),
              HasSubstr("y(0) = 3;"));
  EXPECT_THAT(SourceOf(Block(diff, "diff")), HasSubstr("no source to apply it to"));
  EXPECT_THAT(SourceOf(Block(diff, "diff"), CodeForm::kNative, kPython), HasSubstr("does not fit"));
  // A whole file beats a diff that goes with it.
  EXPECT_EQ(SourceOf(Block(diff, "diff") + Block(kKernel), CodeForm::kNative, kPython), kKernel);
}

// Candidates of this repository, as a model would give them.
TEST(CodeOfAnswer, TakesRealCandidatesWhole) {
  namespace fs = std::filesystem;
  int files = 0;
  for (const char* folder : {"/kernels", "/tests/answers"})
    for (const auto& entry :
         fs::recursive_directory_iterator(ASSAY_SOURCE_DIRECTORY + std::string(folder))) {
      const std::string suffix = entry.path().extension().string();
      if (suffix != ".cpp" && suffix != ".cu" && suffix != ".c" && suffix != ".py") continue;
      const std::string source = ReadFile(entry.path(), 1 << 20).value_or("");
      if (source.find("def get_inputs") != std::string::npos) continue;  // a problem
      if (entry.path().filename() == "blackwell.cu") continue;           // to be read, not judged
      ++files;
      EXPECT_EQ(SourceOf("An idea:\n\n" + Block(source) + "\nIt is fast."), source) << entry.path();
      EXPECT_EQ(SourceOf("An idea:\n\n" + source + "\nIt is fast."), source) << entry.path();
    }
  EXPECT_GT(files, 150);
}

TEST(CodeOfAnswer, FindsTheKernelOfEachRecordedAnswer) {
  int answers = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ASSAY_SOURCE_DIRECTORY "/tests/transcripts")) {
    if (entry.path().extension() != ".jsonl") continue;
    std::istringstream lines(ReadFile(entry.path(), 1 << 24).value_or(""));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json["prompt"].get<std::string>().contains("Do not write code yet")) continue;  // an idea
      ++answers;
      const std::string answer = json["answer"];
      const auto code = CodeOfAnswer(answer, CodeForm::kNative);
      ASSERT_TRUE(code) << entry.path() << ": " << code.error();
      EXPECT_THAT(code->source, HasSubstr("ASSAY_KERNEL("));
      EXPECT_THAT(code->source, testing::Not(HasSubstr("```")));
    }
  }
  EXPECT_EQ(answers, 96 + 12);
}

TEST(CodeOfAnswer, SaysWhatAnAnswerLacks) {
  EXPECT_THAT(SourceOf(""), HasSubstr("is empty"));
  EXPECT_THAT(SourceOf("I cannot do that."), HasSubstr("has no code"));
  EXPECT_THAT(SourceOf(Block("int main() {}\n")), HasSubstr("lacks ASSAY_KERNEL(...), a"));
  EXPECT_THAT(SourceOf(Block(kPython), CodeForm::kNative),
              HasSubstr("has class ModelNew, and a source file with ASSAY_KERNEL(...) was asked"));
  EXPECT_THAT(SourceOf("An ASSAY_KERNEL would be nice."), HasSubstr("has no code"));
  EXPECT_THAT(SourceOf("```"), HasSubstr("has no code"));
}

}  // namespace
}  // namespace assay
