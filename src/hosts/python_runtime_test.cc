#include "hosts/python_runtime.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// On a machine of 32 cores the reference ran into the limit of 64: it could start no thread more.
TEST(PythonRuntime, AHostMayStartAllItsThreads) {
  PythonRuntime python;
  python.executable = "/usr/bin/python3";
  for (const PythonRole role :
       {PythonRole::kReference, PythonRole::kCandidate, PythonRole::kBuild}) {
    const auto request = PythonSandbox(python, role, 127, {});
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_GE(request->limits.processes, 3u * 127);
  }
}

// It ran re.py of whatever folder the user was in.
TEST(PythonRuntime, FilesOfTheWorkingFolderAreNotRun) {
  if (!fs::exists("/usr/bin/python3")) GTEST_SKIP() << "no /usr/bin/python3";
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const fs::path before = fs::current_path(), here = folder->path() / "here",
                 mark = folder->path() / "mark";
  const std::string hostile = "open('" + mark.string() + "', 'w')\n";
  for (const char* name : {"torch.py", "re.py", "os.py"})
    ASSERT_TRUE(WriteFileAtomically(here / name, hostile));
  fs::current_path(here);
  const auto found = FindPython("/usr/bin/python3");
  fs::current_path(before);
  EXPECT_FALSE(fs::exists(mark));
  // A torch.py that lies there is no PyTorch, and has no version.
  if (found) {
    EXPECT_NE(found->torch_version, "unknown");
  }
}

TEST(PythonRuntime, AHostsMessageNamesTheLineOfTheCandidate) {
  EXPECT_EQ(LineOfCandidate("candidate.py line 12: TypeError: x"), 12);
  EXPECT_EQ(LineOfCandidate("ModelNew(1 argument) fails: candidate.py line 3: no"), 3);
  EXPECT_EQ(LineOfCandidate("problem.py line 12: TypeError: x"), 0);
  EXPECT_EQ(LineOfCandidate("candidate.py line"), 0);
  EXPECT_EQ(LineOfCandidate("candidate.py line 99999999999: x"), 0);
}

TEST(PythonRuntime, AnInterpreterIsAskedOnce) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const fs::path python = folder->path() / "python", asked = folder->path() / "asked";
  ASSERT_TRUE(WriteFileAtomically(python, "#!/bin/sh\necho >> " + asked.string() + "\necho " +
                                              python.string() +
                                              "\necho 3.11.2\necho 2.0\necho -\n"));
  fs::permissions(python, fs::perms::owner_all);
  for (int i = 0; i < 2; ++i) {
    const auto found = FindPython(python.string());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->torch_version, "2.0");
  }
  EXPECT_EQ(fs::file_size(asked), 1u);
}

}  // namespace
}  // namespace assay
