#include "hosts/bytecode.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "base/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// An interpreter whose PyTorch is one line, and has no bytecode.
class Bytecode : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    python_.executable = "/usr/bin/python3";
    python_.torch_version = "0";
    if (!fs::exists(python_.executable)) GTEST_SKIP() << "no /usr/bin/python3";
    Write("version = 0\n");
    tagged_ = "__init__." + Tag() + ".pyc";
    ::setenv("PYTHONPATH", packages().c_str(), 1);
    // As container images have it.
    ::setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
  }
  void TearDown() override {
    ::unsetenv("PYTHONPATH");
    ::unsetenv("PYTHONDONTWRITEBYTECODE");
  }

  static std::string Tag() {
    FILE* pipe = ::popen(
        "/usr/bin/python3 -c 'import sys; print(sys.implementation.cache_tag, end=\"\")'", "r");
    char tag[64] = {};
    const size_t length = ::fread(tag, 1, sizeof tag - 1, pipe);
    ::pclose(pipe);
    return {tag, length};
  }
  fs::path packages() const { return folder_->path() / "packages"; }
  fs::path all() const { return folder_->path() / "all"; }
  void Write(const std::string& torch) {
    ASSERT_TRUE(WriteFileAtomically(packages() / "torch" / "__init__.py", torch));
  }
  std::string Make() const {
    return BytecodeOf(python_, (packages() / "torch/__pycache__" / tagged_).string(), all());
  }
  static int Count(const fs::path& folder, const std::string& what) {
    int count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      count += entry.path().string().find(what) != std::string::npos && entry.is_regular_file();
    return count;
  }

  std::optional<TemporaryFolder> folder_;
  std::string tagged_;  // the name of PyTorch's bytecode
  PythonRuntime python_;
};

TEST_F(Bytecode, IsMadeOnceAsThePrefixWantsIt) {
  const std::string made = Make();
  ASSERT_FALSE(made.empty());
  EXPECT_EQ(Count(made, packages().string().substr(1) + "/torch/__init__."), 1);
  // No second import, which would fail.
  Write("raise RuntimeError\n");
  EXPECT_EQ(Make(), made);
}

TEST_F(Bytecode, PyTorchThatDoesNotImportLeavesNothing) {
  Write("raise RuntimeError\n");
  EXPECT_EQ(Make(), "");
  EXPECT_TRUE(fs::is_empty(all()));
}

// Whoever judges in a folder that another has filled runs nothing of it.
TEST_F(Bytecode, FilesOfTheWorkingFolderAreNotRun) {
  const fs::path before = fs::current_path(), here = folder_->path() / "here",
                 mark = folder_->path() / "mark";
  const std::string hostile = "open('" + mark.string() + "', 'w')\n";
  for (const char* name : {"torch.py", "numpy.py", "importlib.py", "os.py"})
    ASSERT_TRUE(WriteFileAtomically(here / name, hostile));
  fs::current_path(here);
  const std::string made = Make();
  fs::current_path(before);
  EXPECT_FALSE(made.empty());
  EXPECT_FALSE(fs::exists(mark));
}

// As on a full disk, where Python goes on without a word.
TEST_F(Bytecode, AnImportThatWritesNothingCountsForNothing) {
  ASSERT_TRUE(WriteFileAtomically(packages() / "sitecustomize.py",
                                  "import sys\nsys.dont_write_bytecode = True\n"));
  Write("version = 0\n");
  EXPECT_EQ(Make(), "");
  EXPECT_TRUE(fs::is_empty(all()));
}

TEST_F(Bytecode, AFolderThatCannotBeWrittenIsDoneWithout) {
  ASSERT_TRUE(WriteFileAtomically(all(), "a file"));
  EXPECT_EQ(Make(), "");
}

TEST_F(Bytecode, WhatAKilledCallLeftIsCleared) {
  const fs::path old = all() / "0123-4.making", young = all() / "0123-5.making";
  fs::create_directories(old);
  fs::create_directories(young);
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_FALSE(Make().empty());
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young));  // another call is at it
}

TEST_F(Bytecode, AnotherVersionHasItsOwn) {
  const std::string made = Make();
  python_.torch_version = "1";
  EXPECT_NE(Make(), made);
}

}  // namespace
}  // namespace assay
