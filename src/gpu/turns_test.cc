#include "gpu/turns.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace assay {
namespace {

namespace fs = std::filesystem;

// Two judges: each object has its own locks, as each process has.
class GpuTurnsTest : public testing::Test {
 protected:
  GpuTurnsTest()
      : folder_(fs::temp_directory_path() / ("assay-turns-" + std::to_string(::getpid()))),
        first_(folder_, "GPU-1"),
        second_(folder_, "GPU-1") {}
  ~GpuTurnsTest() override { fs::remove_all(folder_); }

  // Runs `take` beside this thread; true if it has its turn within a tenth of a second.
  bool ComesAtOnce(const std::function<Result<void>()>& take) {
    came_ = false;
    beside_ = std::thread([this, take] {
      if (take()) came_ = true;
    });
    Pause();
    return came_;
  }
  // That somebody still waits can only be seen by time.
  static void Pause() { ::poll(nullptr, 0, 100); }
  bool ComesThen() {
    beside_.join();
    return came_;
  }

  const fs::path folder_;
  GpuTurns first_, second_;
  std::atomic<bool> came_ = false;
  std::thread beside_;
};

TEST_F(GpuTurnsTest, ManyComputeAtOnce) {
  ASSERT_TRUE(first_.Compute({}));
  EXPECT_TRUE(ComesAtOnce([this] { return second_.Compute({}); }));
  EXPECT_TRUE(ComesThen());
}

TEST_F(GpuTurnsTest, WhoMeasuresIsAlone) {
  ASSERT_TRUE(first_.Compute({}));
  ASSERT_TRUE(second_.Compute({}));
  EXPECT_FALSE(ComesAtOnce([this] { return first_.Measure({}); }));
  second_.Leave();
  EXPECT_TRUE(ComesThen());
  EXPECT_FALSE(ComesAtOnce([this] { return second_.Compute({}); }));
  ASSERT_TRUE(first_.ShareAgain({}));
  EXPECT_TRUE(ComesThen());
}

TEST_F(GpuTurnsTest, AMeasurementWaitsForThoseBeforeItAlone) {
  GpuTurns third(folder_, "GPU-1");
  ASSERT_TRUE(first_.Compute({}));
  ASSERT_TRUE(second_.Compute({}));
  EXPECT_FALSE(ComesAtOnce([this] { return first_.Measure({}); }));
  std::atomic<bool> third_came = false;
  std::thread comes_later([&] {
    if (third.Compute({})) third_came = true;
  });
  Pause();
  EXPECT_FALSE(third_came);
  second_.Leave();
  EXPECT_TRUE(ComesThen());
  EXPECT_FALSE(third_came);
  first_.Leave();
  comes_later.join();
  EXPECT_TRUE(third_came);
}

TEST_F(GpuTurnsTest, TurnsNest) {
  ASSERT_TRUE(first_.Compute({}));
  ASSERT_TRUE(first_.Compute({}));
  first_.Leave();
  ASSERT_TRUE(second_.Compute({}));
  EXPECT_FALSE(ComesAtOnce([this] { return second_.Measure({}); }));
  first_.Leave();
  EXPECT_TRUE(ComesThen());
}

TEST_F(GpuTurnsTest, WhoRestsLetsOthersMeasure) {
  ASSERT_TRUE(first_.Compute({}));
  first_.Rest();
  ASSERT_TRUE(second_.Compute({}));
  ASSERT_TRUE(second_.Measure({}));
  EXPECT_FALSE(ComesAtOnce([this] { return first_.EndRest({}); }));
  second_.Leave();
  EXPECT_TRUE(ComesThen());
}

TEST_F(GpuTurnsTest, AnInterruptEndsTheWait) {
  std::atomic<bool> stop = false;
  ASSERT_TRUE(second_.Compute({}));
  ASSERT_TRUE(second_.Measure({}));
  EXPECT_FALSE(ComesAtOnce([&] { return first_.Compute(StopToken(stop)); }));
  stop = true;
  EXPECT_FALSE(ComesThen());
}

// kill -9 of a judge that measures must not bar the GPU.
TEST_F(GpuTurnsTest, TheTurnOfADeadProcessGoesWithIt) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    GpuTurns own(folder_, "GPU-1");
    ::_exit(own.Compute({}) && own.Measure({}) ? 0 : 1);
  }
  int status = 1;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ComesAtOnce([this] { return first_.Compute({}); }));
  EXPECT_TRUE(ComesThen());
}

TEST_F(GpuTurnsTest, WithoutAFolderEveryTurnComesAtOnce) {
  GpuTurns without("/proc/no-such-folder", "GPU-1");
  EXPECT_TRUE(without.Compute({}));
  EXPECT_TRUE(without.Measure({}));
  without.Leave();
}

}  // namespace
}  // namespace assay
