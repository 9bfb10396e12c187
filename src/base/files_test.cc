#include "base/files.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Files, WhatIsWrittenIsRead) {
  auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const auto path = folder->path() / "deep" / "file";
  ASSERT_TRUE(WriteFileAtomically(path, "one"));
  ASSERT_TRUE(WriteFileAtomically(path, "two"));
  EXPECT_EQ(ReadFile(path, 100).value(), "two");
}

TEST(Files, ReadRefusesWhatIsLargerThanItsBound) {
  auto folder = TemporaryFolder::Create();
  const auto path = folder->path() / "file";
  ASSERT_TRUE(WriteFileAtomically(path, "12345"));
  EXPECT_FALSE(ReadFile(path, 4));
  EXPECT_TRUE(ReadFile(path, 5));
}

TEST(Files, ReadNamesWhatIsMissing) {
  const auto result = ReadFile("/no/such/file", 10);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  EXPECT_NE(result.error().message.find("/no/such/file"), std::string::npos);
}

TEST(Files, ReadRefusesAFolderAndADevice) {
  EXPECT_FALSE(ReadFile("/", 10));
  EXPECT_FALSE(ReadFile("/dev/zero", 10));
}

TEST(TemporaryFolder, RemovesItself) {
  std::filesystem::path path;
  {
    auto folder = TemporaryFolder::Create();
    path = folder->path();
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace assay
