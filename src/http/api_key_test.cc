#include "http/api_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/files.h"

namespace assay {
namespace {

using testing::HasSubstr;
using testing::Not;

// The flags that the kernel has for the page at `address`, as in /proc/self/smaps.
std::string FlagsOf(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto at = reinterpret_cast<uintptr_t>(address);
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t from = 0, to = 0;
    if (::sscanf(line.c_str(), "%lx-%lx ", &from, &to) == 2) is_here = from <= at && at < to;
    if (is_here && line.starts_with("VmFlags:")) return line;
  }
  return "";
}

TEST(ApiKey, KeepsOutOfCoreDumps) {
  std::string text = "sk-0123456789";
  const auto key = ApiKey::Take(text, "test");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->text(), "sk-0123456789");
  EXPECT_TRUE(text.empty());
  EXPECT_THAT(FlagsOf(key->text().data()), HasSubstr(" dd"));
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_CORE, &limit), 0);
  EXPECT_LE(limit.rlim_cur, 1u);
}

TEST(ApiKey, AProcessThatDiesWithAKeyLeavesNoCore) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    rlimit limit{};
    ::getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_CORE, &limit);
    std::string text = "sk-0123456789";
    const auto key = ApiKey::Take(text, "test");
    ::raise(SIGQUIT);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
  EXPECT_FALSE(WCOREDUMP(status));
}

TEST(ApiKey, ScrubsText) {
  std::string text = "sk-0123456789";
  const auto key = ApiKey::Take(text, "test");
  EXPECT_EQ(key->Scrubbed("a sk-0123456789sk-0123456789 b"), "a [key][key] b");
  EXPECT_EQ(key->Scrubbed("a sk-012345678 b"), "a sk-012345678 b");
  EXPECT_TRUE(key->IsIn("xsk-0123456789"));
  // A placeholder is not looked for.
  std::string placeholder = "none";
  EXPECT_EQ(ApiKey::Take(placeholder, "test")->Scrubbed("none of them"), "none of them");
  EXPECT_EQ(ApiKey().Scrubbed("text"), "text");
}

TEST(ApiKey, RefusesWhatNoKeyHas) {
  for (const std::string bad :
       {"two words", "line\nX-Other: header", "\x01secret", "caf\xc3\xa9"}) {
    std::string text = bad;
    const auto key = ApiKey::Take(text, "the file");
    ASSERT_FALSE(key);
    EXPECT_EQ(key.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(key.error().message, HasSubstr("the file holds no key"));
    EXPECT_THAT(key.error().message, Not(HasSubstr(bad)));
  }
}

TEST(ApiKey, ReadsFilesAndTheEnvironment) {
  const auto folder = TemporaryFolder::Create();
  const std::string path = (folder->path() / "key").string();
  ASSERT_TRUE(WriteFileAtomically(path, "  sk-from-a-file\nmore\n"));
  EXPECT_EQ(ReadKeyFile(path)->text(), "sk-from-a-file");
  ASSERT_TRUE(WriteFileAtomically(path, "\n"));
  EXPECT_THAT(ReadKeyFile(path).error().message, HasSubstr("holds no key"));
  EXPECT_FALSE(ReadKeyFile(path + "-missing"));
  ::setenv("ASSAY_TEST_KEY", "sk-from-the-environment", 1);
  EXPECT_EQ(KeyFromEnvironment("ASSAY_TEST_KEY")->text(), "sk-from-the-environment");
  ::setenv("ASSAY_TEST_KEY", "", 1);
  EXPECT_TRUE(KeyFromEnvironment("ASSAY_TEST_KEY")->empty());
  ::unsetenv("ASSAY_TEST_KEY");
  EXPECT_TRUE(KeyFromEnvironment("ASSAY_TEST_KEY")->empty());
}

TEST(ApiKey, Moves) {
  std::string text = "sk-0123456789";
  ApiKey first = *ApiKey::Take(text, "test");
  ApiKey second = std::move(first);
  EXPECT_EQ(second.text(), "sk-0123456789");
  EXPECT_TRUE(first.empty());
  first = std::move(second);
  EXPECT_EQ(first.text(), "sk-0123456789");
}

}  // namespace
}  // namespace assay
