#include "hosts/library_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "hosts/freezer.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(LibraryTime, ReadsTheCodeOfAMap) {
  const auto ranges = ParseCodeRanges(
      "00400000-00401000 r--p 00000000 fe:00 1    /assay/native_host\n"
      "00401000-00402000 r-xp 00001000 fe:00 1    /assay/native_host\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
      "7f0000002000-7f0000003000 r-xp 00000000 fe:00 2    /usr/lib/libopenblas.so.0 (deleted)\n"
      "nonsense\n");
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ranges[0].name, "native_host");
  EXPECT_EQ(ranges[0].begin, 0x401000u);
  EXPECT_EQ(ranges[1].name, "");
  EXPECT_EQ(ranges[2].name, "libopenblas.so.0");
}

TEST(LibraryTime, LibrariesOfOthersAreForeign) {
  for (const char* name : {"libtorch_cpu.so", "libopenblas.so.0", "libmkl_core.so.2",
                           "libdnnl.so.2", "libblas.so.3", "libcblas.so.3"})
    EXPECT_TRUE(IsForeignLibrary(name)) << name;
  for (const char* name :
       {"kernel.so", "native_host", "libc.so.6", "libm.so.6", "libstdc++.so.6.0.30",
        "libgomp.so.1.0.0", "libassay_host.so", "python3.11", "[vdso]", "", "libpython3.11.so.1.0",
        "fused_extension.so"})
    EXPECT_FALSE(IsForeignLibrary(name)) << name;
}

TEST(LibraryTime, SharesAreOfAllSamples) {
  const std::vector<CodeRange> ranges = {{0x1000, 0x2000, "kernel.so"},
                                         {0x3000, 0x4000, "libopenblas.so.0"}};
  LibraryClock clock;
  for (int i = 0; i < 3; ++i) clock.Count(0x3fff, ranges);
  clock.Count(0x1000, ranges);
  const LibraryTime time = clock.Time();
  EXPECT_EQ(time.samples, 4);
  EXPECT_DOUBLE_EQ(time.foreign_share, 0.75);
  EXPECT_THAT(time.shares, ElementsAre(Pair("libopenblas.so.0", 0.75)));
}

// oneDNN's kernels have no file: they are written into memory as the library runs.
TEST(LibraryTime, GeneratedCodeBesideAForeignLibraryIsForeign) {
  const CodeRange generated{0x5000, 0x6000, ""}, own{0x1000, 0x2000, "kernel.so"},
      library{0x3000, 0x4000, "libdnnl.so.2"};
  LibraryClock with_library, alone;
  with_library.Count(0x5800, {own, library, generated});
  alone.Count(0x5800, {own, generated});
  EXPECT_EQ(with_library.Time().foreign_share, 1);
  EXPECT_EQ(alone.Time().foreign_share, 0);
}

// Returns when the process has used CPU time since.
void AwaitWork(pid_t pid) {
  const auto before = ProcessCpuNs(pid);
  while (ProcessCpuNs(pid) == before) {
  }
}

// Returns when the process waits in pause(): a fresh one is still on its way there, and a thawed
// one goes back to it.
void AwaitPause(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/syscall";
  for (;;) {
    const auto call = ReadFile(path, 4096);
    ASSERT_TRUE(call) << call.error().message;
    if (call->starts_with(std::to_string(SYS_pause) + " ")) return;
  }
}

TEST(LibraryTime, SeesAProcessAtWorkAndNotOneThatSleeps) {
  const pid_t busy = ::fork();
  if (busy == 0)
    for (;;) asm volatile("" ::: "memory");
  const pid_t idle = ::fork();
  if (idle == 0)
    for (;;) ::pause();
  AwaitWork(busy);
  AwaitPause(idle);
  LibraryClock at_work, asleep;
  for (int i = 0; i < 5; ++i) {
    Freezer busy_freezer(busy), idle_freezer(idle);
    ASSERT_TRUE(busy_freezer.Freeze() && idle_freezer.Freeze());
    at_work.Sample(busy);
    asleep.Sample(idle);
    busy_freezer.Thaw();
    idle_freezer.Thaw();
    AwaitWork(busy);
    AwaitPause(idle);
  }
  for (const pid_t pid : {busy, idle}) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  EXPECT_GE(at_work.Time().samples, 4);
  EXPECT_EQ(at_work.Time().foreign_share, 0);
  EXPECT_EQ(asleep.Time().samples, 0);
}

}  // namespace
}  // namespace assay
