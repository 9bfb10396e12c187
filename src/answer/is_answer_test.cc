#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "answer/code_of_answer.h"
#include "base/files.h"

namespace assay {
namespace {

constexpr const char* kProse[] = {"Here is the kernel:\n\n",
                                  "Sure! Here's a faster version.\n",
                                  "```\n",
                                  "  ~~~python\n",
                                  "<think>\nSum in order, or in pairs?\n</think>\n",
                                  "so pairs are better\n</think>\n\n",
                                  "**Idea**: keep a row in registers\n",
                                  "I sum in double (see below), then scale.\n"};

TEST(IsAnswer, KnowsProseFencesAndTagsBeforeCode) {
  for (const char* prose : kProse) {
    EXPECT_TRUE(
        IsAnswer(prose + std::string("import torch\nclass ModelNew: pass\n"), CodeForm::kPython))
        << prose;
    EXPECT_TRUE(IsAnswer(prose + std::string("#include <cmath>\nint f();\n"), CodeForm::kNative))
        << prose;
  }
}

TEST(IsAnswer, KnowsProseBehindCode) {
  EXPECT_TRUE(IsAnswer("x = 1\n\nThis returns x.\n", CodeForm::kPython));
  EXPECT_TRUE(IsAnswer("int f();\n\nThis returns x.\n", CodeForm::kNative));
  EXPECT_TRUE(IsAnswer("x = 1\n```\n", CodeForm::kPython));
}

TEST(IsAnswer, LooksAtNoTextWithinCode) {
  for (const char* python :
       {"", "\n\n", "'''Here is the kernel:\n```python\n<think>\n'''\nx = 1\n",
        "# Here is the kernel:\nx = 1  # as it was said before.\n",
        "x = \"Here is it\"\ny = r'''a\n``` b'''\n", "match = case = type = 1\nprint(match, case)",
        "x = 'one \\\n```two words'\n", "def f(a): return not a\n", "x = 1 if y else 2\n",
        "async def f(): pass\n", "f(a,\n  **more)\n", "class A: pass\n", "x = \"don't\"\n",
        "f'{x!r} is there'\n"})
    EXPECT_FALSE(IsAnswer(python, CodeForm::kPython)) << python;
  for (const char* native :
       {"", "/* Here is the kernel:\n```\n<think>\n*/\nint f();\n",
        "// Here is the kernel:\nint f();  // as it was said before.\n",
        "const char* s = R\"x(\n``` a\n)\" )x\";\n", "unsigned long long f();\n",
        "struct Tile final :\n  Base {};\n", "#error this isn't C++\n", "int x = 1'000'000;\n",
        "template <class T> struct A :\n T {};\n", "static const char c = '\\'';\n"})
    EXPECT_FALSE(IsAnswer(native, CodeForm::kNative)) << native;
}

// Real candidates and problems, all of which are taken as they are.
TEST(IsAnswer, IsFalseForEveryFileOfThisRepository) {
  namespace fs = std::filesystem;
  int files = 0;
  for (const char* folder : {"/kernels", "/problems", "/tests", "/host", "/examples", "/bench"})
    for (const auto& entry :
         fs::recursive_directory_iterator(ASSAY_SOURCE_DIRECTORY + std::string(folder))) {
      const std::string suffix = entry.path().extension().string();
      const bool python = suffix == ".py";
      if (!python && suffix != ".cpp" && suffix != ".cu" && suffix != ".c" && suffix != ".cc")
        continue;
      const auto source = ReadFile(entry.path(), 1 << 20);
      if (!source) continue;
      ++files;
      EXPECT_FALSE(IsAnswer(*source, python ? CodeForm::kPython : CodeForm::kNative))
          << entry.path();
    }
  EXPECT_GT(files, 500);
}

}  // namespace
}  // namespace assay
