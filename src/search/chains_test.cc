#include "search/chains.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <semaphore>

#include "archive/sqlite_store.h"
#include "base/files.h"
#include "search/engine.h"
#include "search/judges.h"
#include "search/proposals.h"
#include "search/search_testing.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Prompts name the question; answers are the source, or "no code".
class PlainWriter : public Writer {
 public:
  Prompt Ask(const Question& question) const override {
    Prompt prompt;
    prompt.text = question.operation;
    for (const Tried* parent : question.parents)
      prompt.text += fmt::format(" [{}: {}{}]", parent->key, parent->source, parent->trouble);
    prompt.text += fmt::format(" after {}", question.tried.size());
    if (!question.idea.empty()) prompt.text += " by " + question.idea;
    return prompt;
  }
  std::expected<std::string, std::string> ReadCode(const Answer& answer,
                                                   const std::string&) const override {
    if (answer.text == "no code") return std::unexpected("there is no code");
    return answer.text;
  }
  std::string ReadIdea(const Answer& answer) const override { return answer.text; }
  std::string CandidateName() const override { return "candidate.cpp"; }
};

SearchSettings Settings() {
  SearchSettings settings;
  settings.id = "0123456789ab";
  settings.problem = "softmax";
  settings.terms = settings.screening_terms = R"({"problem":"softmax"})";
  settings.strategy = "refine";
  settings.proposer = "fake";
  settings.finalists = 2;
  return settings;
}

class ChainSearch : public ::testing::Test {
 protected:
  ChainSearch()
      : folder_(TemporaryFolder::Create().value()),
        store_(SqliteStore::Open((folder_.path() / "a.sqlite").string()).value()) {}

  // A source is as fast as its length says; those with an x are wrong.
  static double ScoreOf(const std::string& source) {
    return source.contains('x') ? 0 : static_cast<double>(source.size()) / 10;
  }
  Result<void> Run(ChainTerms terms, FakeProposer::Reply reply,
                   SearchSettings settings = Settings()) {
    RecordQuery query;
    query.kind = RecordKind::kSearch;
    Journal journal = store_->Find(query)->empty() ? Journal::Begin(*store_, settings).value()
                                                   : Journal::Open(*store_, "").value();
    FakeProposer proposer([this, reply](const Prompt& prompt) {
      const std::lock_guard lock(mutex_);
      asked_.push_back(fmt::format("{}: {}", prompt.key, prompt.text));
      return reply(prompt);
    });
    Proposals proposals(proposer, 1);
    ScriptedFleet fleet(ScoreOf);
    Judges judges(fleet, {}, {}, {});
    Chains chains(writer_, terms);
    SearchEngine engine({journal, chains, judges, &proposals}, events_);
    auto end = engine.Run(StopToken());
    spent_ = engine.ledger().spent();
    counts_ = engine.table().counts();
    budget_ended_ = engine.budget_ended();
    if (const SearchNode* result = engine.table().confirmed())
      result_ = result->lineage.parents.front();
    return end;
  }

  TemporaryFolder folder_;
  std::unique_ptr<SqliteStore> store_;
  PlainWriter writer_;
  std::mutex mutex_;
  std::vector<std::string> asked_;
  Spending spent_;
  std::map<std::string, int64_t> counts_;
  std::string result_;
  SearchEvents events_;
  bool budget_ended_ = false;
};

Answer Text(const std::string& text) {
  Answer answer;
  answer.text = text;
  answer.usage = {30, 20, 0.25, 0.1};
  return answer;
}

TEST_F(ChainSearch, EachTurnSeesTheOneBefore) {
  const std::map<std::string, std::string> answers{{"propose/0/0", "no code"},
                                                   {"propose/0/1", "x"},
                                                   {"propose/0/2", "int kernel;"},
                                                   {"propose/0/3", "int kernel_2;"}};
  ASSERT_TRUE(
      Run({1, 4, 1, 7}, [&](const Prompt& prompt) { return Text(answers.at(prompt.key)); }));
  EXPECT_THAT(asked_, ElementsAre("propose/0/0: draft after 0",
                                  "propose/0/1: repair [propose/0/0: there is no code] after 0",
                                  "propose/0/2: repair [judge/0/1: x] after 1",
                                  "propose/0/3: refine [judge/0/2: int kernel;] after 2"));
  EXPECT_EQ(result_, "judge/0/3");
  EXPECT_EQ(spent_.evaluations, 3 + 2);
  EXPECT_EQ(spent_.tokens, 4 * 50);
  EXPECT_DOUBLE_EQ(spent_.usd, 1.0);
}

TEST_F(ChainSearch, SamplesKnowNothingOfEachOther) {
  ASSERT_TRUE(Run({5, 1, 2, 7}, [](const Prompt& prompt) { return Text("int " + prompt.key); }));
  EXPECT_EQ(asked_.size(), 5u);
  for (const std::string& asked : asked_) EXPECT_THAT(asked, HasSubstr("draft after 0"));
}

TEST_F(ChainSearch, ADuplicateTakesTheEarlierVerdict) {
  int answers = 0;
  ASSERT_TRUE(Run({3, 1, 1, 7}, [&](const Prompt&) {
    return Text(fmt::format("int  kernel_;  // {}\n", ++answers));
  }));
  EXPECT_EQ(counts_["duplicate"], 2);
  EXPECT_EQ(spent_.evaluations, 1 + 1);
  // Told again, it is the same.
  const Spending before = spent_;
  ASSERT_TRUE(Run({3, 1, 1, 7}, [](const Prompt&) { return Text("never asked"); }));
  EXPECT_EQ(asked_.size(), 3u);
  EXPECT_EQ(spent_.evaluations, before.evaluations);
  EXPECT_EQ(counts_["duplicate"], 2);
}

TEST_F(ChainSearch, MoneyEndsTheSearch) {
  SearchSettings settings = Settings();
  settings.budget.usd = 1;
  ASSERT_TRUE(Run(
      {100, 4, 1, 7}, [](const Prompt&) { return Text("no code"); }, settings));
  // Each costs 0.25, and 0.5 must be free before.
  EXPECT_EQ(asked_.size(), 3u);
  EXPECT_LE(spent_.usd, 1);
}

TEST_F(ChainSearch, ACallWithoutAnAnswerIsBookedAndIsNoEnd) {
  ASSERT_TRUE(Run({2, 1, 2, 7}, [](const Prompt& prompt) -> Result<Answer> {
    if (prompt.key == "propose/0/0") return EnvironmentError("the server is busy");
    return Text("int kernel;");
  }));
  EXPECT_DOUBLE_EQ(spent_.usd, 0.75);
  EXPECT_EQ(result_, "judge/1/0");
}

TEST_F(ChainSearch, WhereNobodyAnswersTheQuestionsStayOpen) {
  const auto silent = [](const Prompt&) -> Result<Answer> {
    return EnvironmentError("cannot reach it");
  };
  const auto end = Run({3, 1, 3, 7}, silent);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(end.error().message,
            "nobody answers: 3 questions in a row without an answer: cannot reach it");
  ASSERT_TRUE(Run({3, 1, 3, 7}, [](const Prompt& prompt) { return Text("int " + prompt.key); }));
  EXPECT_EQ(asked_.size(), 6u);
  EXPECT_EQ(counts_["faster"], 3);
  EXPECT_DOUBLE_EQ(spent_.usd, 3 * 0.5 + 3 * 0.25);  // the calls of the first process are booked
}

TEST_F(ChainSearch, ATurnWithoutAnAnswerIsAskedAgain) {
  ASSERT_TRUE(Run({2, 3, 2, 7}, [](const Prompt& prompt) -> Result<Answer> {
    if (prompt.key == "propose/0/1") return EnvironmentError("its key is at home");
    return Text("int " + prompt.key);
  }));
  EXPECT_THAT(asked_, Contains("propose/0/1: refine [judge/0/0: int propose/0/0] after 0"));
  EXPECT_THAT(asked_, Contains("propose/0/2: refine [judge/0/0: int propose/0/0] after 0"));
}

TEST_F(ChainSearch, AWrongKeyIsSaidOnceAndTheSearchGoesOnLater) {
  const auto end = Run(
      {3, 1, 1, 7}, [](const Prompt&) -> Result<Answer> { return UsageError("the key is wrong"); });
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "the key is wrong");
  EXPECT_EQ(asked_.size(), 1u);
  ASSERT_TRUE(Run({3, 1, 1, 7}, [](const Prompt& prompt) { return Text("int " + prompt.key); }));
  EXPECT_EQ(asked_.size(), 4u);
  EXPECT_DOUBLE_EQ(spent_.usd, 0.75);
}

TEST_F(ChainSearch, NoMoreIsAskedThanCanBeJudged) {
  SearchSettings settings = Settings();
  settings.budget.evaluations = 5;  // one of them is a finalist's
  ASSERT_TRUE(Run(
      {20, 1, 8, 7}, [](const Prompt& prompt) { return Text("int " + prompt.key); }, settings));
  EXPECT_EQ(asked_.size(), 4u);
  EXPECT_EQ(spent_.evaluations, 5);
  EXPECT_TRUE(budget_ended_);
}

TEST_F(ChainSearch, NoAnswerIsAwaitedPastTheBudgetsSeconds) {
  SearchSettings settings = Settings();
  settings.budget.seconds = 0.1;
  int64_t now_ns = 0;
  events_.now_ns = [&] { return now_ns += 10'000'000; };
  std::binary_semaphore over(0);
  events_.at = [&](const char* point) {
    if (std::string_view(point) == "after result") over.release();
  };
  const auto late = [&](const Prompt&) {
    over.acquire();
    return Text("int kernel;");
  };
  ASSERT_TRUE(Run({4, 4, 1, 7}, late, settings));
  EXPECT_EQ(asked_.size(), 1u);
  EXPECT_TRUE(budget_ended_);
  EXPECT_DOUBLE_EQ(spent_.usd, 0.5);  // nobody knows: as reserved
  ASSERT_TRUE(Run({4, 4, 1, 7}, late));
  EXPECT_EQ(asked_.size(), 1u);
  EXPECT_DOUBLE_EQ(spent_.usd, 0.5);
}

TEST_F(ChainSearch, APromptWithTheKeyInItIsNotRecorded) {
  const auto end = Run({1, 2, 1, 7}, [](const Prompt&) { return Text("int SECRET;"); });
  ASSERT_FALSE(end);
  EXPECT_THAT(end.error().message, HasSubstr("contains the key"));
  RecordQuery query;
  query.kind = RecordKind::kStep;
  const std::vector<Record> steps = store_->Find(query).value();
  for (const Record& record : steps)
    EXPECT_EQ(store_->Get(record.content)->find("SECRET"), std::string::npos);
}

TEST_F(ChainSearch, FreeAnswersAreWrittenTogether) {
  for (const bool is_free : {false, true}) {
    SearchSettings settings = Settings();
    settings.id = is_free ? "f4ee00000000" : "4a1d00000000";
    CountingStore counting(*store_);
    Journal journal = Journal::Begin(counting, settings).value();
    FakeProposer proposer([](const Prompt&) { return Text("no code"); });
    proposer.is_free = is_free;
    Proposals proposals(proposer, 1);
    ScriptedFleet fleet(ScoreOf);
    Judges judges(fleet, {}, {}, {});
    Chains chains(writer_, {40, 1, 8, 7});
    SearchEvents events;
    events.now_ns = [] { return 0; };  // a slow machine writes more often
    ASSERT_TRUE(SearchEngine({journal, chains, judges, &proposals}, events).Run(StopToken()));
    // An intent and a result each; or all of them at the end.
    EXPECT_EQ(counting.appends, is_free ? 2 : 1 + 2 * 40);
    RecordQuery query;
    query.id = settings.id;
    EXPECT_EQ(store_->Find(query)->size(), 1u + 2 * 40);
  }
}

TEST(ChainSteering, IdeasPinsAndPrunings) {
  const PlainWriter writer;
  Chains chains(writer, {4, 2, 1, 7});
  const StepResult answer{Text("int kernel;"), std::nullopt, std::nullopt, ""};
  const StepResult verdict{std::nullopt, VerdictWith(1.5, "a"), std::nullopt, ""};
  auto steps = chains.Begin();
  ASSERT_EQ(steps.size(), 1u);
  chains.Steered("inject", "keep rows in registers");
  chains.Steered("prune", "0");
  auto judged = chains.Heard(steps[0], answer);
  steps = chains.Heard(judged.at(0), verdict);  // chain 0 has no second turn
  EXPECT_EQ(steps.at(0).key, "propose/1/0");
  EXPECT_THAT(steps[0].prompt.text, HasSubstr("realise after 0 by keep rows in registers"));
  chains.Steered("pin", "judge/0/0");
  judged = chains.Heard(steps[0], answer);
  steps = chains.Heard(judged.at(0), verdict);
  EXPECT_EQ(steps.at(0).key, "propose/1/1");
  judged = chains.Heard(steps[0], answer);
  steps = chains.Heard(judged.at(0), verdict);
  EXPECT_EQ(steps.at(0).key, "propose/2/0");
  EXPECT_THAT(steps[0].prompt.text, HasSubstr("refine [judge/0/0: int kernel;]"));
  EXPECT_THAT(steps[0].lineage.parents, ElementsAre("judge/0/0"));
}

}  // namespace
}  // namespace assay
