#include "report/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "report/text.h"

namespace assay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMillisecondNs = 1'000'000;

class ProgressTest : public testing::Test {
 protected:
  ProgressTest() : file_(::memfd_create("progress", MFD_CLOEXEC)) {
    options_.fd = file_.get();
    options_.terminal = {.interactive = true, .colour = false, .unicode = true, .width = 80};
    options_.now_ns = [this] { return now_ns_.load(); };
  }
  std::string Written() const {
    std::string text(static_cast<size_t>(::lseek(file_.get(), 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(file_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }
  int Draws() const {
    int count = 0;
    const std::string text = Written();
    for (size_t at = text.find("\r\x1b[K"); at != std::string::npos;
         at = text.find("\r\x1b[K", at + 1))
      ++count;
    return count;
  }

  UniqueFd file_;
  std::atomic<int64_t> now_ns_ = 5'000'000'000;
  ProgressOptions options_;
};

TEST_F(ProgressTest, ShowsBarShareAndStage) {
  Progress progress(options_);
  progress.Update("gate 1: draw 7 of 14", 0.5);
  EXPECT_EQ(Written(),
            "\r\x1b[K━━━━━━━━━━━━──────────── "
            " 50%  gate 1: draw 7 of 14");
}

TEST_F(ProgressTest, UnknownShareHasNoBar) {
  Progress progress(options_);
  progress.Update("compiling", -1);
  EXPECT_EQ(Written(), "\r\x1b[Kcompiling");
}

TEST_F(ProgressTest, DrawsAtMostTenTimesASecond) {
  Progress progress(options_);
  for (int i = 0; i < 2000; ++i) {
    progress.Update("gate 2: pair 5 of 32", 0.1);
    now_ns_ += kMillisecondNs;
  }
  EXPECT_EQ(Draws(), 20);
}

TEST_F(ProgressTest, ManyStagesAreBoundedToo) {
  Progress progress(options_);
  for (int i = 0; i < 500; ++i) {
    progress.Update(i % 2 == 0 ? "compiling" : "starting", 0.1);
    now_ns_ += kMillisecondNs;
  }
  EXPECT_EQ(Draws(), 10);
}

TEST_F(ProgressTest, ANewStageShowsAtOnce) {
  Progress progress(options_);
  progress.Update("compiling 1 of 3", 0.1);
  progress.Update("compiling 2 of 3", 0.2);
  progress.Update("starting hosts", 0.3);
  EXPECT_THAT(Written(), Not(HasSubstr("compiling 2")));
  EXPECT_THAT(Written(), EndsWith("starting hosts"));
}

TEST_F(ProgressTest, ClearErasesTheLineOnce) {
  Progress progress(options_);
  progress.Clear();
  EXPECT_EQ(Written(), "");
  progress.Update("compiling", 0);
  progress.Clear();
  progress.Clear();
  EXPECT_EQ(Draws(), 2);
  EXPECT_THAT(Written(), EndsWith("compiling\r\x1b[K"));
}

TEST_F(ProgressTest, TheEndErasesTheLine) {
  { Progress(options_).Update("compiling", 0); }
  EXPECT_THAT(Written(), EndsWith("\r\x1b[K"));
}

TEST_F(ProgressTest, NothingOffATerminal) {
  options_.terminal.interactive = false;
  { Progress(options_).Update("compiling", 0.5); }
  EXPECT_EQ(Written(), "");
}

TEST_F(ProgressTest, VerboseOffATerminalIsALineAStage) {
  options_.terminal.interactive = false;
  options_.verbose = true;
  {
    Progress progress(options_);
    progress.Update("compiling 1 of 2", 0.1);
    progress.Update("compiling 2 of 2", 0.2);
    progress.Update("gate 1: draw 1 of 14", 0.3);
  }
  EXPECT_EQ(Written(), "compiling 1 of 2\ngate 1: draw 1 of 14\n");
}

TEST_F(ProgressTest, FitsNarrowTerminalsAndCarriesNoControlCharacters) {
  options_.terminal.width = 20;
  Progress progress(options_);
  progress.Update("gate 1: a\x1b[31m very long name of a draw", 0.5);
  EXPECT_EQ(Written(), "\r\x1b[Kgate 1: a?[31m ver…");
}

TEST_F(ProgressTest, ThreadsMayUpdateTogether) {
  Progress progress(options_);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) {
        progress.Update("gate 1", 0.5);
        now_ns_ += kMillisecondNs;
        if (j % 50 == 0) progress.Clear();
      }
    });
  for (std::thread& thread : threads) thread.join();
  progress.Clear();
  EXPECT_GT(Draws(), 0);
  EXPECT_THAT(Written(), EndsWith("\r\x1b[K"));
}

}  // namespace
}  // namespace assay
