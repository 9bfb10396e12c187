#include <gmock/gmock.h>

#include <fstream>

#include "base/files.h"
#include "base/hash.h"
#include "toolchain/build.h"

namespace assay {
namespace {

using testing::HasSubstr;

class CandidateTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = (folder_->path() / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

TEST_F(CandidateTest, SuffixDecidesFormAndLanguage) {
  const struct {
    const char* name;
    CandidateForm form;
    const char* language;
  } cases[] = {{"a.cpp", CandidateForm::kNative, "cpp"},
               {"a.cc", CandidateForm::kNative, "cpp"},
               {"a.cxx", CandidateForm::kNative, "cpp"},
               {"a.c", CandidateForm::kNative, "c"},
               {"a.py", CandidateForm::kPython, "python"}};
  for (const auto& expected : cases) {
    const auto candidate = ReadCandidate(Write(expected.name, "x"));
    ASSERT_TRUE(candidate) << expected.name;
    EXPECT_EQ(candidate->form, expected.form) << expected.name;
    EXPECT_EQ(candidate->language, expected.language);
    EXPECT_EQ(candidate->content, "x");
    EXPECT_EQ(candidate->hash, Sha256Hex("x"));
  }
}

TEST_F(CandidateTest, ALaunchLineMakesCudaTheDeviceForm) {
  const auto device = ReadCandidate(Write("a.cu", "//! launch f grid=(1) block=(1) args=()\n"));
  ASSERT_TRUE(device);
  EXPECT_EQ(device->form, CandidateForm::kDevice);
  EXPECT_EQ(device->language, "cuda");
  const auto native = ReadCandidate(Write("b.cu", "ASSAY_KERNEL() {}\n"));
  ASSERT_TRUE(native);
  EXPECT_EQ(native->form, CandidateForm::kNative);
  EXPECT_EQ(native->language, "cuda");
  EXPECT_TRUE(native->IsCuda());
  const auto neither = ReadCandidate(Write("c.cu", "__global__ void f() {}\n"));
  ASSERT_FALSE(neither);
  EXPECT_EQ(neither.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(neither.error().message, HasSubstr("no '//! launch' line and no ASSAY_KERNEL"));
}

TEST_F(CandidateTest, UnknownSuffixIsAUsageErrorThatNamesTheKnownOnes) {
  const auto candidate = ReadCandidate(Write("a.rs", "x"));
  ASSERT_FALSE(candidate);
  EXPECT_EQ(candidate.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(candidate.error().message, HasSubstr(".cpp, .cc, .cxx"));
}

TEST_F(CandidateTest, AnAnswersCodeIsTheCandidate) {
  const std::string model = "import torch\nclass ModelNew(torch.nn.Module):\n    pass\n";
  const std::string kernel = "#include <assay/kernel.h>\nASSAY_KERNEL() {\n}\n";
  const std::string in_c = "#include <assay/kernel.h>\nASSAY_KERNEL_C() {\n}\n";
  const std::string device = "//! launch f grid=(1) block=(1) args=()\n__global__ void f() {}\n";
  const auto fenced = [](const std::string& code) {
    return "<think>Hm.\n```\nclass ModelNew: draft\n```\n</think>\nHere:\n```\n" + code +
           "```\nDone.\n";
  };
  const struct {
    const char* name;
    std::string code;
    const char* language;
  } cases[] = {{"a.py", model, "python"}, {"a.md", model, "python"}, {"a.txt", kernel, "cpp"},
               {"b.txt", in_c, "c"},      {"c.md", device, "cuda"},  {"a.cpp", kernel, "cpp"},
               {"a.cu", kernel, "cuda"},  {"b.cu", device, "cuda"},  {"a.c", in_c, "c"}};
  for (const auto& expected : cases) {
    const auto candidate = ReadCandidate(Write(expected.name, fenced(expected.code)));
    ASSERT_TRUE(candidate) << expected.name << candidate.error().message;
    EXPECT_EQ(candidate->content, expected.code) << expected.name;
    EXPECT_EQ(candidate->hash, Sha256Hex(expected.code));
    EXPECT_EQ(candidate->language, expected.language) << expected.name;
    EXPECT_THAT(candidate->note, HasSubstr("lines, taken out of a model's answer"));
    // By the name and the source alone it is the same candidate.
    const auto again = CandidateFromText(candidate->path, candidate->content);
    ASSERT_TRUE(again);
    EXPECT_EQ(again->language, candidate->language);
    EXPECT_EQ(again->form, candidate->form);
  }
  const auto bare = ReadCandidate(Write("bare.txt", model));
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->content, model);
  EXPECT_EQ(bare->note, "");
}

TEST_F(CandidateTest, AnAnswerWithoutCodeSaysWhatItLacks) {
  const auto text = ReadCandidate(Write("a.md", "# Notes\n\nIt cannot be done.\n"));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(text.error().message, HasSubstr("The answer has no code."));
  // A file of code is judged as it stands: its verdict says that it does not build.
  const std::string lacks = "Here:\n```python\nx = 1\n```\n";
  const auto python = ReadCandidate(Write("a.py", lacks));
  ASSERT_TRUE(python);
  EXPECT_EQ(python->content, lacks);
  EXPECT_THAT(python->note,
              HasSubstr("reads like a model's answer. The answer's code lacks class"));
}

TEST_F(CandidateTest, MissingFileFolderAndOversizeAreUsageErrors) {
  std::filesystem::create_directory(folder_->path() / "folder.cpp");
  for (const std::string& path :
       {(folder_->path() / "none.cpp").string(), (folder_->path() / "folder.cpp").string(),
        Write("big.cpp", std::string(kCandidateBytesMax + 1, ' '))}) {
    const auto candidate = ReadCandidate(path);
    ASSERT_FALSE(candidate) << path;
    EXPECT_EQ(candidate.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(candidate.error().message, HasSubstr(path));
  }
}

TEST_F(CandidateTest, LargestAllowedFileIsRead) {
  EXPECT_TRUE(ReadCandidate(Write("big.cpp", std::string(kCandidateBytesMax, ' '))));
}

}  // namespace
}  // namespace assay
