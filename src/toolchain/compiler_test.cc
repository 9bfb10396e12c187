#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "toolchain/build.h"

namespace assay {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// PATH for the length of one test.
class ScopedPath {
 public:
  explicit ScopedPath(const std::string& path) : before_(::getenv("PATH")) {
    ::setenv("PATH", path.c_str(), 1);
  }
  ~ScopedPath() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

size_t IndexOf(const std::vector<std::string>& command, const std::string& argument) {
  return static_cast<size_t>(std::find(command.begin(), command.end(), argument) - command.begin());
}

TEST(Compiler, FindsTheSystemsOwn) {
  const auto compiler = FindCompiler("", "cpp");
  ASSERT_TRUE(compiler) << compiler.error().message;
  EXPECT_EQ(compiler->name, "g++");
  EXPECT_THAT(compiler->path, StartsWith("/usr/"));
  EXPECT_THAT(compiler->version, HasSubstr("g++"));
  EXPECT_THAT(compiler->version, Not(HasSubstr("\n")));
}

TEST(Compiler, NamedCompilerIsTheOneFound) {
  const auto clang = FindCompiler("clang++", "cpp");
  ASSERT_TRUE(clang) << clang.error().message;
  EXPECT_EQ(clang->name, "clang++");
  // The last of its links is called clang, and would compile C.
  EXPECT_THAT(clang->path, HasSubstr("clang++"));
  EXPECT_THAT(clang->version, HasSubstr("clang version"));
  const auto c = FindCompiler("gcc", "c");
  ASSERT_TRUE(c);
  EXPECT_EQ(c->name, "gcc");
}

TEST(Compiler, MissingCompilerSaysHowToInstallOne) {
  ScopedPath nowhere("/nonexistent");
  const auto cpp = FindCompiler("", "cpp");
  ASSERT_FALSE(cpp);
  EXPECT_EQ(cpp.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(cpp.error().message, HasSubstr("g++ or clang++"));
  EXPECT_THAT(cpp.error().message, HasSubstr("apt-get install g++"));
  const auto clang = FindCompiler("clang++", "cpp");
  ASSERT_FALSE(clang);
  EXPECT_THAT(clang.error().message, HasSubstr("apt-get install clang"));
}

// A compiler in a private folder, a relative PATH entry and a caching wrapper cannot run in the
// sandbox: the search passes them by.
TEST(Compiler, ProgramsOutsideOfTheSystemFoldersArePassedBy) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const std::filesystem::path fake = folder->path() / "g++";
  std::ofstream(fake) << "#!/bin/sh\necho fake\n";
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  {
    ScopedPath only_fake(folder->path().string());
    EXPECT_FALSE(FindCompiler("g++", "cpp"));
  }
  ScopedPath both(folder->path().string() + ":.:/usr/bin");
  const auto compiler = FindCompiler("g++", "cpp");
  ASSERT_TRUE(compiler);
  EXPECT_THAT(compiler->path, StartsWith("/usr/"));
}

// /usr/bin/g++ may lead through /etc/alternatives, which the sandbox does not show.
TEST(Compiler, LinksThatLeadOutsideAreFollowedToTheSystemFolder) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  std::filesystem::create_symlink("/usr/bin/g++", folder->path() / "g++");
  ScopedPath linked(folder->path().string());
  const auto compiler = FindCompiler("g++", "cpp");
  ASSERT_TRUE(compiler);
  EXPECT_EQ(compiler->path, "/usr/bin/g++");
}

TEST(Compiler, CandidatesFlagsFollowTheDefaultsAndLibrariesFollowTheFile) {
  const Compiler compiler{"g++", "/usr/bin/g++", "g++ 12"};
  const auto command = CompileCommand(compiler, {"", {"-O1", "-lm", "-ffast-math"}}, "cpp",
                                      "/candidate/a.cpp", "/tmp/out.so");
  EXPECT_EQ(command.front(), "/usr/bin/g++");
  EXPECT_LT(IndexOf(command, "-O3"), IndexOf(command, "-O1"));
  EXPECT_LT(IndexOf(command, "-O1"), IndexOf(command, "-ffast-math"));
  EXPECT_LT(IndexOf(command, "/candidate/a.cpp"), IndexOf(command, "-lm"));
  EXPECT_EQ(IndexOf(command, "/tmp/out.so"), IndexOf(command, "-o") + 1);
  EXPECT_LT(IndexOf(command, "-lm"), command.size());
  for (const char* needed : {"-march=native", "-std=c++20", "-fPIC", "-shared",
                             "-fvisibility=hidden", "-I/assay/include", "-fmax-errors=3"})
    EXPECT_THAT(command, Contains(needed));
}

TEST(Compiler, EachCompilerGetsItsOwnDiagnosticOptions) {
  const auto clang = CompileCommand({"clang++", "/usr/bin/clang++", ""}, {}, "cpp", "a", "b");
  EXPECT_THAT(clang, Contains("-ferror-limit=3"));
  EXPECT_THAT(clang, Not(Contains("-fmax-errors=3")));
  const auto c = CompileCommand({"gcc", "/usr/bin/gcc", ""}, {}, "c", "a", "b");
  EXPECT_THAT(c, Contains("-std=c11"));
  EXPECT_THAT(c, Not(Contains("-ftemplate-backtrace-limit=2")));
}

}  // namespace
}  // namespace assay
