// Tests the host's report on a candidate that dies.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "judge_double.h"

namespace assay::native {
namespace {

using ::testing::HasSubstr;
using wire::FrameKind;
using wire::Region;

// Runs a body that must die of `signal` in the second call, in slot 1; returns the message.
std::string Crash(const std::string& body, int signal, std::string_view before = "",
                  std::string_view flags = "") {
  const CompiledCandidate candidate(
      WithBody("static int calls; if (++calls < 2) return;\n" + body, before), "cpp", flags);
  JudgeDouble judge(XToY(64, 64), 2);
  judge.StartLoaded(candidate.path());
  judge.EnterBlocks();
  EXPECT_FALSE(judge.RunBlock({0, 1, 0}));
  const int status = judge.Wait();
  EXPECT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), signal);
  EXPECT_EQ(judge.report().fault, wire::Fault::kSignal);
  EXPECT_EQ(judge.report().fault_signal, signal);
  EXPECT_EQ(judge.report().fault_call, 1u);
  EXPECT_THAT(judge.message(), HasSubstr("in call 2 of the block, slot 1"));
  return fmt::format("{} [region {}, address {:#x}]", judge.message(),
                     static_cast<uint32_t>(judge.report().fault_region),
                     judge.report().fault_address);
}

TEST(Faults, SaysWhatACrashTouched) {
  const std::string input = Crash("const_cast<float*>(x.data())[3] = 1;", SIGSEGV);
  EXPECT_THAT(input, HasSubstr("write to the inputs, which are read-only (byte 12 of x)"));
  EXPECT_THAT(input, HasSubstr(fmt::format("[region {},", static_cast<uint32_t>(Region::kInputs))));
  EXPECT_THAT(Crash("*(volatile float*)(y.data() + 64 * 64 + 4096) = 1;", SIGSEGV),
              HasSubstr("memory beside the outputs ("));
  EXPECT_THAT(Crash("y(0, 0) = *(volatile const float*)(x.data() - (1 << 15));", SIGSEGV),
              HasSubstr("read of memory beside the inputs ("));
  EXPECT_THAT(Crash("*(volatile int*)nullptr = 1;", SIGSEGV,
                    "#pragma GCC diagnostic ignored \"-Wnull-dereference\""),
              HasSubstr("write to a null pointer"));
  EXPECT_THAT(Crash("y(0, 0) = float(Deep(1 << 30));", SIGSEGV,
                    "__attribute__((noinline)) int Deep(int n) { volatile char room[4096]; room[0] "
                    "= char(n); "
                    "return n == 0 ? room[0] : Deep(n - 1) + room[0]; }"),
              HasSubstr("the stack is probably full"));
}

// A region has room for far more slots than are in use: 20 kB past a small output lay in one of
// them and was never seen.
TEST(Faults, MemoryBehindTheSlotsInUseIsClosed) {
  const CompiledCandidate candidate(WithBody("if (x(0, 0) != 0) y.data()[20000] = 1;"), "cpp", "");
  JudgeDouble judge(XToY(64, 64), 16);
  judge.plan().slot_count = 2;
  judge.StartLoaded(candidate.path());
  judge.EnterBlocks();
  EXPECT_TRUE(judge.RunBlock({0, 1}));
  EXPECT_EQ(judge.LeaveBlocks().kind, FrameKind::kDone);
  // It is open again once the slots there are in use.
  judge.plan().slot_count = 16;
  *judge.At<float>("x", 1) = 1;
  judge.EnterBlocks();
  EXPECT_TRUE(judge.RunBlock({1}));
  EXPECT_EQ(judge.LeaveBlocks().kind, FrameKind::kDone);
  judge.plan().slot_count = 2;
  judge.EnterBlocks();
  EXPECT_FALSE(judge.RunBlock({0, 1}));
  const int status = judge.Wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_THAT(judge.message(), HasSubstr(fmt::format("write to memory beside the outputs ({} bytes "
                                                     "past the end of y)",
                                                     4 * (20000 - 64 * 64))));
  EXPECT_EQ(judge.report().fault_region, Region::kOutputs);
  EXPECT_EQ(judge.report().fault_address,
            judge.plan().output_stride + judge.plan().arguments[1].offset + 4 * 20000);
}

TEST(Faults, ReportsOtherDeadlySignals) {
  EXPECT_THAT(Crash("throw 1;", SIGABRT), HasSubstr("abort() was called"));
  EXPECT_THAT(Crash("__builtin_trap();", SIGILL), HasSubstr("SIGILL"));
  EXPECT_THAT(Crash("volatile int zero = 0; y(0, 0) = float(calls * 7 / zero);", SIGFPE),
              HasSubstr("division by zero"));
}

TEST(Faults, ReportsACrashWhileLoading) {
  const CompiledCandidate candidate(
      std::string(kDoubleKernel) +
      "[[maybe_unused]] static int at_start = (__builtin_trap(), 1);\n");
  JudgeDouble judge(XToY(), 1);
  judge.Start(candidate.path());
  ASSERT_NO_FATAL_FAILURE(judge.AttachAll());
  EXPECT_EQ(judge.Load().kind, FrameKind{0});
  const int status = judge.Wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGILL);
  EXPECT_THAT(judge.message(), HasSubstr("while loading the candidate"));
  EXPECT_EQ(judge.report().fault_call, UINT32_MAX);
}

}  // namespace
}  // namespace assay::native
