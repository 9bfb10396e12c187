// Reads samples from a real archive, written by a search's journal.
#include "search/samples.h"

#include <gmock/gmock.h>

#include "archive/judged.h"
#include "archive/sqlite_store.h"
#include "base/files.h"
#include "search/journal.h"
#include "search/search_testing.h"

namespace assay {
namespace {

using testing::IsEmpty;

class Samples : public testing::Test {
 protected:
  Samples()
      : folder_(TemporaryFolder::Create().value()),
        store_(SqliteStore::Open((folder_.path() / "archive.sqlite").string()).value()) {
    SearchSettings settings;
    settings.id = "0123456789ab";
    settings.problem = "softmax";
    settings.terms = settings.screening_terms = "{}";
    settings.strategy = "refine";
    settings.proposer = "replay:answers.jsonl";
    journal_.emplace(Journal::Begin(*store_, settings).value());
  }

  void Do(const Step& step, const StepResult& result) {
    const Step* steps[] = {&step};
    const Spending reserved[] = {{}};
    ASSERT_TRUE(journal_->Intend(steps, reserved, {}));
    const SettledStep settled[] = {{step, result, {}}};
    ASSERT_TRUE(journal_->Settle(settled, 1));
  }
  void Ask(const std::string& key, const std::string& parent, const std::string& text) {
    Step step;
    step.kind = StepKind::kPropose;
    step.key = key;
    if (!parent.empty()) step.lineage.parents = {parent};
    step.prompt.system = "be fast";
    step.prompt.text = "write " + key;
    StepResult result;
    result.answer = Answer{text, "", "a-model", "stop", {}};
    Do(step, result);
  }
  Step Judging(const std::string& key, const std::string& parent, const std::string& source,
               StepKind kind = StepKind::kJudge) {
    Step step;
    step.kind = kind;
    step.key = key;
    step.lineage.parents = {parent};
    step.name = "candidate.cpp";
    step.source = source;
    return step;
  }
  void Judge(const Step& step, double ratio, const std::string& id) {
    StepResult result;
    result.verdict = VerdictWith(ratio, id);
    Do(step, result);
  }
  std::vector<Sample> Read() {
    std::vector<std::string> notices;
    auto samples =
        ReadSamples(*store_, [&](const std::string& notice) { notices.push_back(notice); });
    EXPECT_TRUE(samples) << samples.error().message;
    EXPECT_THAT(notices, IsEmpty());
    return samples.value_or(std::vector<Sample>());
  }

  TemporaryFolder folder_;
  std::unique_ptr<SqliteStore> store_;
  std::optional<Journal> journal_;
};

TEST_F(Samples, HaveThePromptAndAnswerOfTheirCandidate) {
  Ask("propose/0/0", "", "```cpp\nint a;\n```");
  Judge(Judging("judge/0/0", "propose/0/0", "int a;"), 0, "aaaaaaaaaaaa");
  Ask("propose/0/1", "judge/0/0", "```cpp\nint b;\n```");
  Judge(Judging("judge/0/1", "propose/0/1", "int b;"), 2, "bbbbbbbbbbbb");
  const auto samples = Read();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].verdict->outcome, Outcome::kWrong);
  EXPECT_EQ(samples[0].prompt, "write propose/0/0");
  EXPECT_EQ(samples[0].parent, "");
  EXPECT_EQ(samples[1].source, "int b;");
  EXPECT_EQ(samples[1].answer, "```cpp\nint b;\n```");
  EXPECT_EQ(samples[1].model, "a-model");
  EXPECT_EQ(samples[1].system, "be fast");
  EXPECT_EQ(samples[1].proposer, "replay:answers.jsonl");
  EXPECT_EQ(samples[1].search, "0123456789ab");
  EXPECT_EQ(samples[1].key, "judge/0/1");
  EXPECT_EQ(samples[1].parent, "judge/0/0");
}

TEST_F(Samples, CountByTheSecondJudgementOfAFinalist) {
  Ask("propose/1", "", "int a;");
  Judge(Judging("judge/1", "propose/1", "int a;"), 2, "aaaaaaaaaaaa");
  Judge(Judging("confirm/judge/1", "judge/1", "int a;", StepKind::kConfirm), 0.5, "bbbbbbbbbbbb");
  const auto samples = Read();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].verdict->outcome, Outcome::kFaster);
  EXPECT_EQ(samples[0].Counts().outcome, Outcome::kSlower);
  EXPECT_EQ(samples[1].key, "confirm/judge/1");
  EXPECT_EQ(samples[1].search, "0123456789ab");
  EXPECT_EQ(samples[1].model, "a-model");
  EXPECT_EQ(samples[1].answer, "");  // the first one's
}

TEST_F(Samples, OfDuplicatesHaveTheEarlierVerdict) {
  Ask("propose/0/0", "", "first");
  Judge(Judging("judge/0/0", "propose/0/0", "int a;"), 2, "aaaaaaaaaaaa");
  Ask("propose/1/0", "", "second");
  StepResult duplicate;
  duplicate.verdict = VerdictWith(2, "aaaaaaaaaaaa");
  duplicate.duplicate_of = "judge/0/0";
  Do(Judging("judge/1/0", "propose/1/0", "int a;  // again"), duplicate);
  const auto samples = Read();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].answer, "first");
  EXPECT_EQ(samples[1].answer, "second");
  EXPECT_EQ(samples[1].source, "int a;  // again");
  EXPECT_EQ(samples[1].verdict->id, "aaaaaaaaaaaa");
}

TEST_F(Samples, OfAnswersWithoutCodeAndOfErrorsHaveNoVerdict) {
  Ask("propose/0/0", "", "I cannot");
  Ask("propose/0/1", "propose/0/0", "```cpp\nint a;\n```");
  StepResult failed;
  failed.error = Error{ErrorKind::kEnvironment, "the worker ended"};
  Do(Judging("judge/0/1", "propose/0/1", "int a;"), failed);
  Ask("propose/1/0", "", "perhaps its judgement was still to begin");
  const auto samples = Read();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].key, "judge/0/1");
  EXPECT_EQ(samples[0].source, "int a;");
  EXPECT_FALSE(samples[0].verdict);
  EXPECT_EQ(samples[0].parent, "propose/0/0");
  EXPECT_EQ(samples[1].answer, "I cannot");
  EXPECT_EQ(samples[1].source, "");
}

TEST_F(Samples, OfOtherCommandsHaveNoSearch) {
  ASSERT_TRUE(store_->Append(
      RecordsOfVerdict({"mine.cpp", "int a;", "softmax", "{}"}, VerdictWith(2, "aaaaaaaaaaaa"))));
  const auto samples = Read();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].name, "mine.cpp");
  EXPECT_EQ(samples[0].search, "");
  EXPECT_EQ(samples[0].prompt, "");
}

}  // namespace
}  // namespace assay
