#include "propose/inbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/files.h"

namespace assay {
namespace {
namespace fs = std::filesystem;

using testing::HasSubstr;

TEST(InboxName, IsOneFileName) {
  EXPECT_EQ(InboxName("softmax/7"), "softmax+7");
  EXPECT_EQ(InboxName("../a b+c"), "%2E.+a%20b%2Bc");
  EXPECT_EQ(InboxName("caf\xc3\xa9"), "caf%C3%A9");
  const std::string longer = InboxName(std::string(300, 'x') + "1");
  EXPECT_LE(longer.size(), 200u);
  EXPECT_NE(longer, InboxName(std::string(300, 'x') + "2"));
}

class Inbox : public testing::Test {
 protected:
  Inbox() : folder_(*TemporaryFolder::Create()), path_(folder_.path() / "in") {}
  std::unique_ptr<Proposer> Open(double timeout_s = 10) {
    return *InboxProposer::Open("inbox:x", path_.string(), {0.15, timeout_s, 1000});
  }
  std::string Read(const std::string& name) { return ReadFile(path_ / name, 1000).value_or(""); }
  // Waits until the prompt is there.
  void AwaitPrompt() {
    const Deadline deadline = Deadline::AfterSeconds(5);
    while (!fs::exists(path_ / "a+1.prompt.md") && !deadline.Expired()) ::poll(nullptr, 0, 5);
  }
  const Prompt prompt_{"a/1", "You write kernels.", "Write one."};
  const TemporaryFolder folder_;
  const fs::path path_;
};

TEST_F(Inbox, AsksAndTakesARenamedAnswer) {
  std::thread person([this] {
    AwaitPrompt();
    std::ofstream(path_ / "draft") << "hello\n";
    fs::rename(path_ / "draft", path_ / "a+1.answer.md");
  });
  const auto answer = Open()->Propose(prompt_, {});
  person.join();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, "hello\n");
  EXPECT_EQ(answer->model, "inbox");
  EXPECT_EQ(Read("a+1.prompt.md"), "You write kernels.\n\nWrite one.\n");
}

TEST_F(Inbox, WaitsUntilAnAnswerIsWhole) {
  std::thread person([this] {
    AwaitPrompt();
    std::ofstream file(path_ / "a+1.answer.md");
    for (const char* part : {"", "one ", "two ", "three"}) {
      file << part << std::flush;
      ::poll(nullptr, 0, 50);
    }
  });
  const auto answer = Open()->Propose(prompt_, {});
  person.join();
  EXPECT_EQ(answer.value_or(Answer{}).text, "one two three");
}

TEST_F(Inbox, AsksNothingTwiceAfterARestart) {
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    AwaitPrompt();
    stopped = true;
  });
  EXPECT_EQ(Open()->Propose(prompt_, StopToken(stopped)).error().kind, ErrorKind::kInterrupted);
  stopper.join();
  ASSERT_TRUE(WriteFileAtomically(path_ / "a+1.answer.md", "<think>hm</think>later"));
  const auto before = fs::last_write_time(path_ / "a+1.prompt.md");
  const auto answer = Open()->Propose(prompt_, {});
  EXPECT_EQ(answer.value_or(Answer{}).text, "later");
  EXPECT_EQ(answer.value_or(Answer{}).reasoning, "hm");
  EXPECT_EQ(fs::last_write_time(path_ / "a+1.prompt.md"), before);
}

TEST_F(Inbox, NeverTakesTheAnswerToAnotherPrompt) {
  const auto proposer = Open(0.01);
  EXPECT_THAT(proposer->Propose(prompt_, {}).error().message, HasSubstr("no answer in"));
  // Unanswered, it is replaced.
  EXPECT_FALSE(proposer->Propose({"a/1", "", "Another."}, {}));
  EXPECT_EQ(Read("a+1.prompt.md"), "Another.\n");
  ASSERT_TRUE(WriteFileAtomically(path_ / "a+1.answer.md", "x"));
  const auto answer = proposer->Propose(prompt_, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(answer.error().message, HasSubstr("answers another prompt"));
  EXPECT_EQ(Read("a+1.answer.md"), "x");
}

TEST_F(Inbox, BoundsAnAnswer) {
  ASSERT_TRUE(InboxProposer::Open("inbox:x", path_.string()));
  ASSERT_TRUE(WriteFileAtomically(path_ / "a+1.answer.md", std::string(2000, 'x')));
  EXPECT_THAT(Open()->Propose(prompt_, {}).error().message, HasSubstr("larger than the limit"));
}

TEST_F(Inbox, TellsOfAFolderThatCannotBe) {
  ASSERT_TRUE(WriteFileAtomically(path_, "a file"));
  EXPECT_EQ(InboxProposer::Open("inbox:x", path_.string()).error().kind, ErrorKind::kUsage);
  fs::remove(path_);
  const auto proposer = Open();
  std::thread remover([this] {
    AwaitPrompt();
    fs::remove_all(path_);
  });
  EXPECT_THAT(proposer->Propose(prompt_, {}).error().message, HasSubstr("is gone"));
  remover.join();
}

}  // namespace
}  // namespace assay
