#include "propose/transcript.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/files.h"
#include "propose/command_proposer.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Answers each prompt with its number.
class Counting : public Proposer {
 public:
  explicit Counting(std::atomic<int>& asked) : asked_(asked) {}
  std::string Name() const override { return "counting:"; }
  Usage Reservation(const Prompt&) const override { return {1, 2, 3, 4}; }
  Result<Answer> Propose(const Prompt& prompt, StopToken) override {
    const int number = ++asked_;
    if (prompt.text == "fail") return EnvironmentError("failed");
    Answer answer;
    answer.text = std::to_string(number);
    answer.reasoning = "since";
    answer.model = "counter";
    answer.finish = "stop";
    answer.usage = {10, 20, 0.125, 0.5};
    return answer;
  }

 private:
  std::atomic<int>& asked_;
};

class TranscriptFile : public testing::Test {
 protected:
  Result<std::unique_ptr<Proposer>> Recording() {
    return RecordingProposer::Open(std::make_unique<Counting>(asked_), path_, "a test");
  }
  Result<std::unique_ptr<Proposer>> Replay() { return ReplayProposer::Open("replay:x", path_); }
  std::string Content() { return ReadFile(path_, 1 << 20).value_or(""); }

  std::atomic<int> asked_ = 0;
  TemporaryFolder folder_ = *TemporaryFolder::Create();
  std::string path_ = (folder_.path() / "transcript.jsonl").string();
};

TEST_F(TranscriptFile, RecordsAndReplays) {
  const Prompt first{"softmax/1", "system", "write"},
      second{"softmax/2", "system", "caf\xc3\xa9 \xff"};
  {
    const auto recording = Recording();
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ((*recording)->Name(), "counting:");
    EXPECT_EQ((*recording)->Propose(first, {})->text, "1");
    EXPECT_EQ((*recording)->Propose(second, {})->text, "2");
    EXPECT_FALSE((*recording)->Propose({"softmax/3", "", "fail"}, {}));
  }
  const auto replay = Replay();
  ASSERT_TRUE(replay) << replay.error().message;
  for (int i = 0; i < 2; ++i) {
    const auto answer = (*replay)->Propose(second, {});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->text, "2");
    EXPECT_EQ(answer->reasoning, "since");
    EXPECT_EQ(answer->model, "counter");
    EXPECT_EQ(answer->finish, "stop");
    EXPECT_EQ(answer->usage.tokens_out, 20);
    EXPECT_EQ(answer->usage.usd, 0.125);
  }
  EXPECT_EQ((*replay)->Reservation(first).tokens_in, 10);
  // By the key, whatever is asked; else by the prompt, whatever its key.
  EXPECT_EQ((*replay)->Propose({"softmax/1", "", "with other times"}, {})->text, "1");
  EXPECT_EQ((*replay)->Propose({"other/9", "system", "write"}, {})->text, "1");
  const auto missing = (*replay)->Propose({"softmax/3", "", "fail"}, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(missing.error().message, AllOf(HasSubstr(path_), HasSubstr("softmax/3")));
}

// By Debian's python3-jsonschema, where it is installed.
TEST_F(TranscriptFile, FitsItsSchema) {
  EXPECT_TRUE((*Recording())->Propose({"a/1", "system", "caf\xc3\xa9 \xff"}, {}));
  const auto validator = CommandProposer::Open(
      "validator",
      "/usr/bin/python3 -c 'import json, sys\ntry:\n  import jsonschema\nexcept ImportError:\n"
      "  sys.exit(\"absent\")\nschema = json.load(open(sys.argv[1]))\n"
      "jsonschema.Draft202012Validator.check_schema(schema)\n"
      "jsonschema.validate(json.load(sys.stdin), schema)\nprint(\"fits\")' " ASSAY_SOURCE_DIRECTORY
      "/docs/transcript.schema.json");
  if (!validator) GTEST_SKIP() << validator.error().message;
  const auto said = (*validator)->Propose({"k", "", Content()}, {});
  if (!said && said.error().message.find("absent") != std::string::npos)
    GTEST_SKIP() << "no jsonschema";
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(said->text, "fits\n");
  // A line that lacks something does not fit.
  EXPECT_FALSE((*validator)->Propose({"k", "", "{\"schema\":\"assay.transcript/1\"}"}, {}));
}

TEST_F(TranscriptFile, AsksNothingTwice) {
  const Prompt prompt{"a/1", "", "write"};
  EXPECT_EQ((*Recording())->Propose(prompt, {})->text, "1");
  const auto again = Recording();
  EXPECT_EQ((*again)->Propose(prompt, {})->text, "1");
  EXPECT_EQ(asked_, 1);
  // Another prompt under the key is another question; the last answer counts.
  EXPECT_EQ((*again)->Propose({"a/1", "", "write better"}, {})->text, "2");
  EXPECT_EQ((*Replay())->Propose(prompt, {})->text, "2");
}

TEST_F(TranscriptFile, GoesOnAfterATornLine) {
  EXPECT_TRUE((*Recording())->Propose({"a/1", "", "one"}, {}));
  const std::string whole = Content();
  ASSERT_TRUE(WriteFileAtomically(path_, whole + whole.substr(0, whole.size() / 2)));
  const auto recording = Recording();
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE((*recording)->Propose({"a/2", "", "two"}, {}));
  EXPECT_EQ((*Replay())->Propose({"a/2", "", ""}, {})->text, "2");
}

TEST_F(TranscriptFile, LeavesOtherFilesAlone) {
  for (const std::string other :
       {"a list\nof things", "{\"schema\":\"assay.verdict/1\"}\n", "notes"}) {
    ASSERT_TRUE(WriteFileAtomically(path_, other));
    const auto recording = Recording();
    ASSERT_FALSE(recording);
    EXPECT_EQ(recording.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(Content(), other);
    EXPECT_FALSE(Replay());
  }
  ASSERT_TRUE(WriteFileAtomically(path_, ""));
  EXPECT_THAT(Replay().error().message, HasSubstr("has no answers"));
}

TEST_F(TranscriptFile, HasOneWriter) {
  const auto first = Recording();
  EXPECT_THAT(Recording().error().message, HasSubstr("in use"));
}

TEST_F(TranscriptFile, ManyThreadsRecord) {
  const auto recording = Recording();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&recording, t] {
      for (int i = 0; i < 20; ++i)
        EXPECT_TRUE(
            (*recording)->Propose({std::to_string(t) + "/" + std::to_string(i), "", "x"}, {}));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::ranges::count(Content(), '\n'), 80);
  // The same prompt under a new key always has the same answer.
  const auto replay = Replay();
  const std::string chosen = (*replay)->Propose({"new", "", "x"}, {})->text;
  EXPECT_EQ((*Replay())->Propose({"new", "", "x"}, {})->text, chosen);
}

}  // namespace
}  // namespace assay
