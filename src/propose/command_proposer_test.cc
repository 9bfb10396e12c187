#include "propose/command_proposer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "base/clock.h"
#include "base/files.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Result<Answer> Ask(std::string_view command, CommandTerms terms = {10}, StopToken stop = {}) {
  const auto proposer = CommandProposer::Open("command:x", command, terms);
  if (!proposer) return std::unexpected(proposer.error());
  Prompt prompt{"a/1", "System.", "Text."};
  prompt.seed = 7;
  return (*proposer)->Propose(prompt, stop);
}

TEST(SplitCommand, QuotesAsAShellDoes) {
  EXPECT_THAT(*SplitCommand(" a  'b c' \"d 'e'\\\"\" f\\ g '' "),
              ElementsAre("a", "b c", "d 'e'\"", "f g", ""));
  EXPECT_FALSE(SplitCommand("a 'b"));
  EXPECT_FALSE(SplitCommand("  "));
}

TEST(Command, GetsThePromptAndAnswers) {
  const auto answer = Ask("sh -c 'cat; echo key $ASSAY_PROMPT_KEY seed $ASSAY_SEED'");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "System.\n\nText.\nkey a/1 seed 7\n");
  EXPECT_EQ(answer->model, "sh");
  // A program may open it by name, and need not read it.
  EXPECT_EQ(Ask("sh -c 'head -n 1 /dev/stdin'").value_or(Answer{}).text, "System.\n");
  const auto empty = Ask("true");
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_EQ(empty->text, "");
  EXPECT_EQ(Ask("echo '<think>a</think>b'").value_or(Answer{}).reasoning, "a");
}

// A program that starts a search of its own passes its environment on: the first of two values won.
TEST(Command, VariablesOfAnOuterSearchAreNotPassedOn) {
  ::setenv("ASSAY_SEED", "1", 1);
  const auto answer = Ask("sh -c 'env | grep ASSAY_SEED'");
  ::unsetenv("ASSAY_SEED");
  EXPECT_EQ(answer.value_or(Answer{}).text, "ASSAY_SEED=7\n");
}

TEST(Command, TellsOfFailure) {
  EXPECT_THAT(Ask("sh -c 'echo why >&2; exit 3'").error().message,
              HasSubstr("command:x ended with exit code 3:\nwhy"));
  EXPECT_THAT(Ask("sh -c 'kill -9 $$'").error().message, HasSubstr("was killed by signal 9"));
  const auto missing = Ask("no-such-program-anywhere");
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(missing.error().message, HasSubstr("there is no program"));
  EXPECT_LT(Ask("sh -c 'yes error | head -c 100000 >&2; exit 1'").error().message.size(), 4000u);
}

TEST(Command, EndsAFloodAndAHang) {
  const Deadline soon = Deadline::AfterSeconds(5);
  EXPECT_THAT(Ask("yes", {10, 100'000}).error().message, HasSubstr("wrote more than 100000 bytes"));
  EXPECT_THAT(Ask("sleep 60", {0.1}).error().message, HasSubstr("gave no answer in"));
  EXPECT_THAT(Ask("sh -c 'exec >&- 2>&-; sleep 60'", {0.1}).error().message,
              HasSubstr("gave no answer in"));
  EXPECT_FALSE(soon.Expired());
}

TEST(Command, KillsAllThatItStartedAtAStop) {
  const TemporaryFolder folder = *TemporaryFolder::Create();
  const std::string path = (folder.path() / "pid").string();
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    const Deadline deadline = Deadline::AfterSeconds(5);
    while (ReadFile(path, 100).value_or("").empty() && !deadline.Expired()) ::poll(nullptr, 0, 5);
    stopped = true;
  });
  const auto answer =
      Ask("sh -c 'sleep 60 & echo $! > " + path + "; wait'", {10}, StopToken(stopped));
  stopper.join();
  EXPECT_EQ(answer.error().kind, ErrorKind::kInterrupted);
  const int child = std::stoi(ReadFile(path, 100).value_or("0"));
  ASSERT_GT(child, 1);
  const Deadline deadline = Deadline::AfterSeconds(5);
  // It is gone, or a zombie that nobody has awaited yet.
  const auto lives = [&] {
    const std::string stat =
        ReadFile("/proc/" + std::to_string(child) + "/stat", 4096).value_or("");
    return !stat.empty() && stat.find(") Z ") == std::string::npos;
  };
  while (lives() && !deadline.Expired()) ::poll(nullptr, 0, 5);
  EXPECT_FALSE(lives());
}

TEST(Command, DoesNotWaitForWhatItLeftRunning) {
  const Deadline soon = Deadline::AfterSeconds(5);
  EXPECT_EQ(Ask("sh -c 'sleep 60 & echo done'").value_or(Answer{}).text, "done\n");
  EXPECT_FALSE(soon.Expired());
}

}  // namespace
}  // namespace assay
