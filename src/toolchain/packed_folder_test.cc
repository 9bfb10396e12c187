#include "toolchain/packed_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "base/hash.h"

namespace assay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kModel = "from .ops import twice\nclass ModelNew: pass\n";
constexpr const char* kKernel = "#include \"tile.h\"\nASSAY_KERNEL() {}\n";

class PackedFolderTest : public testing::Test {
 protected:
  fs::path Write(const std::string& name, const std::string& content) {
    const fs::path path = Folder() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  fs::path Folder() const { return folder_->path() / "mine"; }
  std::string Refusal() const {
    const auto packed = PackFolder(Folder().string());
    if (packed) return "none";
    EXPECT_EQ(packed.error().kind, ErrorKind::kUsage);
    return packed.error().message;
  }

  Result<TemporaryFolder> folder_ = TemporaryFolder::Create();
};

TEST_F(PackedFolderTest, IsOneSortedTextThatUnpacks) {
  Write("main.py", kModel);
  Write("csrc/bind.cpp", "int f();");  // without a line break at its end
  Write("csrc/empty.h", "");
  Write("__pycache__/main.pyc", std::string("\0\1", 2));
  Write(".git/objects/a", std::string("\0\1", 2));
  const auto packed = PackFolder(Folder().string());
  ASSERT_TRUE(packed) << packed.error().message;
  EXPECT_EQ(*packed, std::string("assay.folder/1\nentry main.py\nfile csrc/bind.cpp 8\nint f();\n"
                                 "file csrc/empty.h 0\n\nfile main.py 44\n") +
                         kModel + "\n");
  const auto folder = UnpackFolder(*packed);
  ASSERT_TRUE(folder);
  EXPECT_EQ(folder->entry, "main.py");
  EXPECT_EQ(EntryText(*packed), kModel);
  ASSERT_EQ(folder->files.size(), 3u);
  EXPECT_EQ(folder->files[0].content, "int f();");
  EXPECT_EQ(WithEntryText(*packed, kModel), *packed);
  EXPECT_EQ(EntryText(WithEntryText(*packed, "x = 1\n")), "x = 1\n");
  EXPECT_EQ(EntryText("x = 1\n"), "x = 1\n");
}

TEST_F(PackedFolderTest, IsACandidateByItsFolderAndByItsText) {
  Write("kernel.cpp", kKernel);
  Write("tile.h", "");
  const auto candidate = ReadCandidate(Folder().string() + "/");
  ASSERT_TRUE(candidate) << candidate.error().message;
  EXPECT_EQ(candidate->path, Folder().string());
  EXPECT_EQ(candidate->form, CandidateForm::kNative);
  EXPECT_EQ(candidate->language, "cpp");
  EXPECT_EQ(candidate->hash, Sha256Hex(candidate->content));
  EXPECT_EQ(candidate->note, "a folder of 2 files; the entry is kernel.cpp");
  EXPECT_EQ(EntryPath(*candidate), "/candidate/folder/kernel.cpp");
  EXPECT_EQ(PlacedFiles(*candidate)[1].path, "/candidate/folder/tile.h");
  // As the archive shows it.
  const fs::path shown = folder_->path() / "shown";
  std::ofstream(shown) << candidate->content;
  const auto again = ReadCandidate(shown.string());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->hash, candidate->hash);
  EXPECT_EQ(again->form, candidate->form);
  std::ofstream(shown) << candidate->content.substr(0, 60);
  EXPECT_THAT(ReadCandidate(shown.string()).error().message, HasSubstr("changed or cut off"));
  std::ofstream(shown) << "no candidate";
  EXPECT_THAT(ReadCandidate(shown.string()).error().message, HasSubstr("its name must end in"));
}

TEST_F(PackedFolderTest, TheEntryIsCalledCandidateOrHasTheMarks) {
  Write("a.py", kModel);
  Write("deep/b.py", kModel);
  EXPECT_EQ(UnpackFolder(PackFolder(Folder().string()).value())->entry, "a.py");
  Write("b.py", kModel);
  EXPECT_THAT(Refusal(), HasSubstr("several files that could be its entry (a.py and b.py): call "
                                   "the one that is to be judged candidate.py"));
  Write("candidate.py", "from a import ModelNew\n");
  EXPECT_EQ(UnpackFolder(PackFolder(Folder().string()).value())->entry, "candidate.py");
}

TEST_F(PackedFolderTest, RefusesWhatIsNoCandidate) {
  fs::create_directories(Folder());
  EXPECT_THAT(Refusal(), HasSubstr("no file at its top has class ModelNew"));
  Write("main.py", kModel);
  const fs::path binary = Write("lib.so", std::string("\x7f"
                                                      "ELF\0",
                                                      5));
  EXPECT_THAT(Refusal(), HasSubstr(binary.string() + " is not text"));
  fs::remove(binary);
  fs::create_symlink("/etc/passwd", Folder() / "link.py");
  EXPECT_THAT(Refusal(), HasSubstr("is a link"));
  fs::remove(Folder() / "link.py");
  fs::create_directory_symlink("/etc", Folder() / "linked");
  EXPECT_THAT(Refusal(), HasSubstr("is a link"));
  fs::remove(Folder() / "linked");
  const fs::path odd = Write("a\nb.py", "");
  EXPECT_THAT(Refusal(), HasSubstr("has a name that"));
  fs::remove(odd);
  const fs::path large = Write("large.h", std::string(kCandidateBytesMax - 20, ' '));
  EXPECT_THAT(Refusal(), HasSubstr("has over 1 MiB of sources"));
  fs::remove(large);
  for (size_t i = 0; i < kFolderFilesMax; ++i) Write(fmt::format("{}.h", i), "");
  EXPECT_THAT(Refusal(), HasSubstr("has over 64 files"));
}

TEST(UnpackFolder, TakesCanonicalTextsAlone) {
  const std::string heading = "assay.folder/1\nentry a.py\n", file = "file a.py 1\nx\n";
  EXPECT_TRUE(UnpackFolder(heading + file));
  for (const std::string& text : std::vector<std::string>{
           "x", heading, heading + "file b.py 1\nx\n", heading + file + file,
           heading + "file a.py 01\nx\n", heading + "file a.py 2\nx\n", heading + "file a.py 1\nxy",
           heading + "file /a.py 1\nx\n" + file, heading + "file ../a.py 1\nx\n" + file,
           heading + file + "file a.py/b 1\nx\n", heading + file + "trailing\n",
           heading + file + std::string("file b 1\n\0\n", 11),
           "assay.folder/1\nentry b/a.py\nfile b/a.py 1\nx\n"})
    EXPECT_FALSE(UnpackFolder(text)) << text;
}

}  // namespace
}  // namespace assay
