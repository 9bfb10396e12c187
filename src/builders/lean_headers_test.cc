#include "builders/lean_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

std::string Tar(std::string name, std::string content) {
  name.resize(512, '\0');
  content.resize(512, '\0');
  return name + content + std::string(1024, '\0');
}

TEST(LeanHeaders, AreShownUnderPyTorchsNames) {
  const auto headers = ReadLeanHeaders();
  ASSERT_TRUE(headers) << headers.error().message;
  std::vector<std::string> targets;
  for (const SandboxFile& file : headers->files) targets.push_back(file.target);
  EXPECT_THAT(targets, testing::IsSupersetOf({"/assay/lean/torch/extension.h",
                                              "/assay/lean/torch/types.h",
                                              "/assay/lean/ATen/ATen.h"}));
  EXPECT_EQ(headers->hash.size(), 64u);
}

TEST(LeanHeaders, PrecompiledOnesAreSearchedFirst) {
  LeanHeaders headers;
  headers.files.push_back({"/assay/lean/torch/extension.h", "content", false});
  SandboxRequest request;
  PreferLeanHeaders(headers, "", &request);
  EXPECT_EQ(request.files.size(), 1u);
  EXPECT_EQ(request.environment["ASSAY_LEAN_HEADERS"], "/assay/lean");
  EXPECT_TRUE(request.binds.empty());
  PreferLeanHeaders(headers, "/somewhere", &request);
  EXPECT_EQ(request.environment["ASSAY_LEAN_HEADERS"], "/assay/precompiled:/assay/lean");
  ASSERT_EQ(request.binds.size(), 1u);
  EXPECT_EQ(request.binds[0].source, "/somewhere");
  EXPECT_EQ(request.binds[0].target, "/assay/precompiled");
}

TEST(LeanHeaders, AnArtifactSaysWithWhichItWasBuilt) {
  EXPECT_EQ(HeadersOf(Tar(".assay_headers", "lean")), "lean");
  EXPECT_EQ(HeadersOf(Tar(".assay_headers", "full")), "full");
  EXPECT_EQ(HeadersOf(Tar(".assay_headers", "leaner")), "");
  EXPECT_EQ(HeadersOf(Tar(".assay_headers_too", "lean")), "");
  EXPECT_EQ(HeadersOf(Tar("file", "lean")), "");
  EXPECT_EQ(HeadersOf(""), "");
  EXPECT_EQ(HeadersOf(std::string(".assay_headers\0", 15)), "");
}

// An interpreter that takes the place of Python and writes what the script would.
TEST(LeanHeaders, ArePrecompiledOnceForAPyTorch) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const auto headers = ReadLeanHeaders();
  ASSERT_TRUE(headers);
  PythonRuntime python;
  python.executable = (folder->path() / "python").string();
  ASSERT_TRUE(WriteFileAtomically(python.executable,
                                  "#!/bin/sh\n"
                                  "test \"$1\" = -s && test -f \"$3/torch/extension.h\" &&\n"
                                  "  echo once > \"$4/made\"\n"));
  fs::permissions(python.executable, fs::perms(0755));
  const fs::path all = folder->path() / "kind" / "all";
  const std::string made = PrecompiledHeaders(python, *headers, all);
  if (made.empty()) GTEST_SKIP() << "c++ is not GCC's";
  EXPECT_TRUE(fs::exists(fs::path(made) / "made"));
  ASSERT_TRUE(WriteFileAtomically(python.executable, "#!/bin/sh\nexit 1\n"));
  EXPECT_EQ(PrecompiledHeaders(python, *headers, all), made);
  python.torch_version = "another";
  EXPECT_EQ(PrecompiledHeaders(python, *headers, all), "");
}

}  // namespace
}  // namespace assay
