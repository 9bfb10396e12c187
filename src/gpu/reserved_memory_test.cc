#include "gpu/reserved_memory.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kGib = uint64_t{1} << 30;

// Several judges: each reservation has a file of its own open, as each process has.
class ReservedMemoryTest : public testing::Test {
 protected:
  ReservedMemoryTest()
      : folder_(fs::temp_directory_path() / ("assay-memory-" + std::to_string(::getpid()))) {}
  ~ReservedMemoryTest() override {
    if (beside_.joinable()) beside_.join();
    fs::remove_all(folder_);
  }

  MemoryOfGpu Gpu() {
    return {folder_, "GPU-1", 80 * kGib, [this] { return free_bytes_.load(); }};
  }
  Result<ReservedMemory> Reserve(uint64_t gib, int sharers = 8, bool waits = true) {
    return ReservedMemory::Reserve(Gpu(),
                                   {.least_bytes = gib * kGib,
                                    .sharers = sharers,
                                    .waits = waits,
                                    .on_wait = [this](uint64_t bytes) { told_bytes_ = bytes; }},
                                   StopToken(stop_));
  }
  // Reserves on another thread; true if it has its memory within a tenth of a second.
  bool ComesAtOnce(uint64_t gib) {
    beside_ = std::thread([this, gib] {
      later_ = Reserve(gib);
      came_ = later_->has_value();
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
  std::atomic<uint64_t> free_bytes_ = 80 * kGib;
  std::atomic<bool> stop_ = false, came_ = false;
  std::atomic<uint64_t> told_bytes_ = 0;
  std::optional<Result<ReservedMemory>> later_;
  std::thread beside_;
};

TEST_F(ReservedMemoryTest, EachHasItsPartAtLeast) {
  const auto first = Reserve(1), second = Reserve(30);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->bytes(), 10 * kGib);
  EXPECT_EQ(second->bytes(), 30 * kGib);
  EXPECT_EQ(told_bytes_, 0u);
}

TEST_F(ReservedMemoryTest, OneAloneHasWhatIsFreeAndGivesBackWhatItDoesNotNeed) {
  auto first = Reserve(1, 1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes(), 80 * kGib);
  EXPECT_FALSE(ComesAtOnce(20));
  EXPECT_EQ(told_bytes_, 20 * kGib);
  EXPECT_TRUE(first->IsWanted());
  first->Shrink(50 * kGib);
  EXPECT_TRUE(ComesThen());
  EXPECT_FALSE(first->IsWanted());
  const auto third = Reserve(1, 1);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->bytes(), 10 * kGib);
}

TEST_F(ReservedMemoryTest, WhoComesFirstIsServedFirst) {
  auto first = Reserve(60);
  ASSERT_TRUE(first);
  EXPECT_FALSE(ComesAtOnce(50));
  std::atomic<bool> small_came = false;
  std::optional<Result<ReservedMemory>> small;
  std::thread comes_later([&] {
    small = Reserve(1);
    small_came = small->has_value();
  });
  Pause();
  EXPECT_FALSE(small_came);  // though there is room for it
  *first = ReservedMemory();
  EXPECT_TRUE(ComesThen());
  comes_later.join();
  EXPECT_TRUE(small_came);
}

TEST_F(ReservedMemoryTest, AnInterruptEndsTheWaitAndFreesThePlace) {
  const auto first = Reserve(60);
  EXPECT_FALSE(ComesAtOnce(50));
  stop_ = true;
  EXPECT_FALSE(ComesThen());
  EXPECT_EQ(later_->error().kind, ErrorKind::kInterrupted);
  stop_ = false;
  EXPECT_TRUE(Reserve(20));
}

// kill -9 of a judge must give its memory to the others, and its place in the queue.
TEST_F(ReservedMemoryTest, WhatADeadProcessHadGoesToOthers) {
  const auto in_process = [this](uint64_t gib, bool says) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto held = Reserve(gib);
      if (!held || ::write(ready[1], "x", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    char byte;
    EXPECT_EQ(says ? ::read(ready[0], &byte, 1) : 1, 1);
    Pause();
    ::close(ready[0]);
    ::close(ready[1]);
    return pid;
  };
  const pid_t holds = in_process(60, true), waits = in_process(40, false);
  EXPECT_FALSE(ComesAtOnce(20));
  ::kill(waits, SIGKILL);
  ::waitpid(waits, nullptr, 0);
  EXPECT_TRUE(ComesThen());
  came_ = false;
  EXPECT_FALSE(ComesAtOnce(60));
  ::kill(holds, SIGKILL);
  ::waitpid(holds, nullptr, 0);
  Pause();
  later_.reset();
  EXPECT_TRUE(ComesThen());
}

TEST_F(ReservedMemoryTest, OnlyTheWholeGpuRefuses) {
  auto first = Reserve(60);
  ASSERT_TRUE(first);
  EXPECT_FALSE(ComesAtOnce(81));
  *first = ReservedMemory();
  EXPECT_FALSE(ComesThen());
  EXPECT_EQ(later_->error().kind, ErrorKind::kUnjudged);
  EXPECT_EQ(later_->error().code, ErrorCode::kTooLarge);
}

TEST_F(ReservedMemoryTest, WhatOtherProgramsTakeIsNotShared) {
  free_bytes_ = 40 * kGib;
  const auto first = Reserve(1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->bytes(), 5 * kGib);
  // It has touched nothing yet: all but 5 GiB are still to be had.
  const auto second = Reserve(35);
  EXPECT_TRUE(second);
  EXPECT_EQ(told_bytes_, 0u);
  EXPECT_FALSE(ComesAtOnce(2));
  stop_ = true;
  EXPECT_FALSE(ComesThen());
}

TEST_F(ReservedMemoryTest, WhatAnotherProgramTookSinceIsNotThere) {
  const auto first = Reserve(10);
  free_bytes_ = 20 * kGib;
  EXPECT_FALSE(ComesAtOnce(30));
  free_bytes_ = 70 * kGib;
  EXPECT_TRUE(ComesThen());
}

// A judge that holds memory never waits for more.
TEST_F(ReservedMemoryTest, WhoDoesNotWaitIsServedBeforeOthersOrRefused) {
  const auto first = Reserve(50);
  EXPECT_FALSE(ComesAtOnce(60));
  EXPECT_TRUE(Reserve(20, 8, false));
  const auto refused = Reserve(40, 8, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLarge);
  stop_ = true;
  EXPECT_FALSE(ComesThen());
}

TEST_F(ReservedMemoryTest, WithoutAFileTheFreeMemoryIsTheLimit) {
  const auto reserve = [this](uint64_t gib) {
    MemoryOfGpu gpu = Gpu();
    gpu.folder = "/proc/no-such-folder";
    return ReservedMemory::Reserve(gpu, {.least_bytes = gib * kGib, .sharers = 2}, {});
  };
  free_bytes_ = 30 * kGib;
  const auto first = reserve(20), second = reserve(20);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->bytes(), 20 * kGib);
  EXPECT_FALSE(reserve(31));
}

TEST_F(ReservedMemoryTest, OnAFullDiskNobodyWaits) {
  fs::create_directories(folder_);
  fs::create_symlink("/dev/full", folder_ / "GPU-1.memory");
  const auto first = Reserve(60), second = Reserve(60);
  EXPECT_TRUE(first && second);
}

}  // namespace
}  // namespace assay
