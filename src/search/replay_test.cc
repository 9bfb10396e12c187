#include "search/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "answer/code_of_answer.h"
#include "archive/sqlite_store.h"
#include "base/files.h"
#include "base/hash.h"
#include "propose/transcript.h"
#include "search/chains.h"
#include "search/judges.h"
#include "search/proposals.h"
#include "search/search_testing.h"
#include "search/tuner.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSource =
    "#include <assay/kernel.h>\n//! tune A = 1 2 4 8\n//! tune B = 3 1 2 4 5\nint kernel;\n";

double ScoreOf(const std::string& source) {
  return static_cast<double>(Sha256Hex(source)[0] % 8) / 2;
}

SearchSettings TunerSettings() {
  SearchSettings settings;
  settings.id = "0123456789ab";
  settings.seed = 5;
  settings.problem = "softmax";
  settings.terms = settings.screening_terms = R"({"problem":"softmax"})";
  settings.strategy = "evolve";
  settings.proposer = "tuner";
  settings.from_name = "kernel.cpp";
  settings.from_source = kSource;
  settings.width = 3;
  settings.finalists = 2;
  settings.budget.evaluations = 16;
  return settings;
}

Result<std::unique_ptr<Strategy>> MakeTuner(const SearchSettings& settings) {
  ASSAY_ASSIGN_OR_RETURN(
      auto tuner, Tuner::Make(settings.strategy, settings.from_name, settings.from_source, "cpp",
                              settings.seed, static_cast<size_t>(settings.width)));
  return std::unique_ptr<Strategy>(std::move(tuner));
}

// As the writer of real prompts reads answers.
class CodeWriter : public Writer {
 public:
  Prompt Ask(const Question& question) const override {
    Prompt prompt;
    prompt.text = question.operation;
    for (const Tried* parent : question.parents) prompt.text += " " + parent->source;
    return prompt;
  }
  std::expected<std::string, std::string> ReadCode(const Answer& answer,
                                                   const std::string& parent) const override {
    auto code = CodeOfAnswer(answer.text, CodeForm::kNative, parent);
    if (!code) return std::unexpected(code.error());
    return code->source;
  }
  std::string ReadIdea(const Answer& answer) const override { return answer.text; }
  std::string CandidateName() const override { return "candidate.cpp"; }
};

class Replay : public ::testing::Test {
 protected:
  Replay()
      : folder_(TemporaryFolder::Create().value()),
        path_((folder_.path() / "archive.sqlite").string()) {}

  std::unique_ptr<SqliteStore> Open() const { return SqliteStore::Open(path_).value(); }

  // Runs a search with the tuner to its end, or until `events` end it.
  Result<void> Tune(const SearchEvents& events = {}, StopToken stop = StopToken()) const {
    const auto store = Open();
    RecordQuery query;
    query.kind = RecordKind::kSearch;
    Journal journal = store->Find(query)->empty() ? Journal::Begin(*store, TunerSettings()).value()
                                                  : Journal::Open(*store, "").value();
    const auto tuner = MakeTuner(journal.settings()).value();
    ScriptedFleet fleet(ScoreOf);
    Judges judges(fleet, {}, {}, {});
    return SearchEngine({journal, *tuner, judges, nullptr}, events).Run(stop);
  }
  // True: the search has ended.
  bool TuneUntilKilled(int points) const {
    const pid_t child = ::fork();
    if (child == 0) {
      SearchEvents events;
      events.at = [left = points](const char*) mutable {
        if (--left == 0) ::_exit(9);
      };
      ::_exit(Tune(events) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  ReplayReport ReplayIt(const StrategyMaker& make_strategy) {
    const auto store = SqliteStore::OpenToRead(path_).value();
    auto report = ReplaySearch(*store, "", make_strategy, [&](const SearchEngine& engine) {
      spent_ = engine.ledger().spent();
      counts_ = engine.table().counts();
    });
    EXPECT_TRUE(report) << report.error().message;
    if (report->difference)
      described_ =
          fmt::format("{} {}: {} / {}", report->difference->record, report->difference->place,
                      report->difference->recorded, report->difference->replayed);
    return *report;
  }

  TemporaryFolder folder_;
  std::string path_, described_;
  Spending spent_;
  std::map<std::string, int64_t> counts_;
};

TEST_F(Replay, ASearchIsTheSame) {
  ASSERT_TRUE(Tune());
  const ReplayReport report = ReplayIt(MakeTuner);
  EXPECT_FALSE(report.difference) << described_;
  EXPECT_EQ(report.same, report.records);
  EXPECT_EQ(report.records, 1 + 2 * 16);
  EXPECT_EQ(report.verdicts, 16);
  EXPECT_EQ(report.processes, 1);
  EXPECT_EQ(report.next, "");
  EXPECT_EQ(spent_.evaluations, 16);
}

TEST_F(Replay, SoIsOneThatWasKilledAgainAndAgain) {
  int processes = 1;
  for (; !TuneUntilKilled(2 + processes % 7) && processes < 100; ++processes) {
  }
  ASSERT_GT(processes, 8);
  const ReplayReport report = ReplayIt(MakeTuner);
  EXPECT_FALSE(report.difference) << described_;
  EXPECT_EQ(report.same, report.records);
  EXPECT_GT(report.processes, 4);  // a kill with nothing in hand leaves no trace
}

TEST_F(Replay, SoIsOneThatWasInterruptedAndSteered) {
  std::atomic<bool> interrupted = false;
  SearchEvents events;
  int results = 0;
  events.result = [&](const Step&, const StepResult&, const SearchView&) {
    if (++results == 5) interrupted = true;
  };
  ASSERT_FALSE(Tune(events, StopToken(interrupted)));
  ASSERT_TRUE(RecordWish(*Open(), "", "inject", "keep rows in registers"));
  ASSERT_TRUE(RecordWish(*Open(), "", "prune", "judge/1"));
  ASSERT_TRUE(Tune());
  const ReplayReport report = ReplayIt(MakeTuner);
  EXPECT_FALSE(report.difference) << described_;
  EXPECT_EQ(report.same, report.records);
  EXPECT_EQ(report.processes, 2);
}

TEST_F(Replay, AnotherDecisionIsShownWithItsPlace) {
  ASSERT_TRUE(Tune());
  const ReplayReport report = ReplayIt([](const SearchSettings& settings) {
    SearchSettings other = settings;
    other.seed = 6;
    return MakeTuner(other);
  });
  ASSERT_TRUE(report.difference);
  EXPECT_EQ(report.same, 2);  // the settings, and the seed candidate's step
  EXPECT_THAT(described_, HasSubstr("step judge/1 /note: \"A="));
  EXPECT_GT(report.difference->sequence, 2);
}

TEST_F(Replay, OneThatHasNotEndedSaysWhatComesNext) {
  ASSERT_FALSE(TuneUntilKilled(10));
  const ReplayReport report = ReplayIt(MakeTuner);
  EXPECT_FALSE(report.difference) << described_;
  EXPECT_EQ(report.same, report.records);
  EXPECT_NE(report.next, "");
}

// Every answer of the recorded match.
TEST_F(Replay, TranscriptsOfALanguageModel) {
  const CodeWriter writer;
  int answers = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(ASSAY_SOURCE_DIRECTORY "/tests/transcripts")) {
    if (file.path().extension() != ".jsonl" || file.path().string().contains(".evolve.")) continue;
    const bool samples = file.path().string().contains(".sample.");
    SearchSettings settings = TunerSettings();
    settings.id = Sha256Hex(file.path().string()).substr(0, 12);
    settings.budget = {};
    const auto make_chains = [&](const SearchSettings&) -> Result<std::unique_ptr<Strategy>> {
      return std::make_unique<Chains>(writer, ChainTerms{samples ? 4 : 1, samples ? 1 : 4, 8, 5});
    };
    {
      const auto store = Open();
      Journal journal = Journal::Begin(*store, settings).value();
      const auto proposer = ReplayProposer::Open("replay", file.path().string()).value();
      Proposals proposals(*proposer, 4);
      ScriptedFleet fleet(ScoreOf);
      Judges judges(fleet, {}, {}, {});
      const auto chains = make_chains(settings).value();
      const auto end = SearchEngine({journal, *chains, judges, &proposals}, {}).Run(StopToken());
      ASSERT_TRUE(end) << file.path() << end.error().message;
    }
    const ReplayReport report = ReplayIt(make_chains);
    EXPECT_FALSE(report.difference) << file.path() << ": " << described_;
    EXPECT_EQ(report.same, report.records);
    EXPECT_GT(report.verdicts, 0);
    answers += static_cast<int>(report.answers);
  }
  EXPECT_EQ(answers, 96);
}

}  // namespace
}  // namespace assay
