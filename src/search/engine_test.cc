#include "search/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "archive/sqlite_store.h"
#include "base/files.h"
#include "base/hash.h"
#include "search/judges.h"
#include "search/search_testing.h"
#include "search/tuner.h"
#include "session/asked_terms.h"
#include "toolchain/tune_space.h"
#include "worker_client/event.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// 36 points, 33 of which are allowed.
constexpr const char* kSource =
    "#include <assay/kernel.h>\n//! tune A = 1 2 4 8 16 32\n//! tune B = 3 1 2 4 5 6\n"
    "//! require A * B < 100\nint kernel;\n";

double ScoreOf(const std::string& source) {
  const TuneSpace space = *ParseTuneSpace(source, "cpp");
  auto values = ValuesAt(space, TunePoint(space.tunes.size(), 0));
  if (values["B"] == 5) return 0;
  return 0.5 + 0.3 * std::log2(static_cast<double>(values["A"])) -
         0.1 * std::abs(static_cast<double>(values["B"]) - 2);
}

SearchSettings Settings(const std::string& strategy = "evolve") {
  SearchSettings settings;
  settings.id = "0123456789ab";
  settings.seed = 5;
  settings.problem = "softmax";
  settings.terms = settings.screening_terms = R"({"problem":"softmax"})";
  settings.strategy = strategy;
  settings.proposer = "tuner";
  settings.from_name = "kernel.cpp";
  settings.from_source = kSource;
  settings.width = 3;
  settings.finalists = 2;
  return settings;
}

struct Ended {
  Result<void> end;
  std::vector<std::string> told;  // "judge/3 faster"
  Spending spent;
  std::string confirmed;  // key of the result
  std::vector<std::string> requests;
  bool budget_ended = false;
};

class Searching : public ::testing::Test {
 protected:
  Searching()
      : folder_(TemporaryFolder::Create().value()),
        path_((folder_.path() / "archive.sqlite").string()) {}

  // Runs a search to its end; one that was recorded is gone on with.
  Ended Run(const SearchSettings& settings, const SearchEvents& given = {},
            StopToken stop = StopToken(), ScriptedFleet::Trouble trouble = {}) {
    const auto store = SqliteStore::Open(path_).value();
    RecordQuery query;
    query.kind = RecordKind::kSearch;
    const bool begun = !store->Find(query)->empty();
    Journal journal =
        begun ? Journal::Open(*store, "").value() : Journal::Begin(*store, settings).value();
    const SearchSettings& used = journal.settings();
    const auto tuner = Tuner::Make(used.strategy, used.from_name, used.from_source, "cpp",
                                   used.seed, static_cast<size_t>(used.width))
                           .value();
    ScriptedFleet fleet(ScoreOf);
    if (trouble) fleet.trouble = std::move(trouble);
    if (artifact_) fleet.artifact = artifact_;
    AskedTerms screening;
    screening.one_size = true;
    Judges judges(fleet, screening, AskedTerms(), {});
    Ended ended;
    SearchEvents events = given;
    events.result = [&](const Step& step, const StepResult& result, const SearchView& view) {
      ended.told.push_back(fmt::format(
          "{} {}", step.key, result.verdict ? OutcomeName(result.verdict->outcome) : "error"));
      given.result(step, result, view);
    };
    SearchEngine engine({journal, *tuner, judges, nullptr}, events);
    ended.end = engine.Run(stop);
    ended.spent = engine.ledger().spent();
    ended.budget_ended = engine.budget_ended();
    if (const SearchNode* result = engine.table().confirmed())
      ended.confirmed = result->lineage.parents.front();
    ended.requests = fleet.requests;
    return ended;
  }

  struct Recorded {
    std::vector<std::string> results;  // "judge/3 faster", in order
    int64_t intents = 0, released = 0, verdicts = 0;
    int64_t lost = 0, lost_evaluations = 0;
  };
  Recorded Read() const {
    const auto store = SqliteStore::OpenToRead(path_).value();
    EXPECT_THAT(VerifyChain(*store)->faults, IsEmpty());
    Recorded recorded;
    const Journal journal = Journal::Open(*store, "").value();
    for (const JournalEvent& event : journal.events()) {
      if (event.kind == JournalEvent::Kind::kIntent) ++recorded.intents;
      if (event.kind == JournalEvent::Kind::kReleased) ++recorded.released;
      if (event.kind == JournalEvent::Kind::kLost) {
        ++recorded.lost;
        recorded.lost_evaluations += event.cost.evaluations;
      }
      if (event.kind == JournalEvent::Kind::kResult)
        recorded.results.push_back(fmt::format(
            "{} {}", event.key,
            event.result.verdict ? OutcomeName(event.result.verdict->outcome) : "duplicate"));
    }
    RecordQuery query;
    query.kind = RecordKind::kVerdict;
    recorded.verdicts = std::ssize(*store->Find(query));
    return recorded;
  }
  void Forget() { std::filesystem::remove(path_); }

  // Runs until the named points were passed this many times; then the process ends there.
  int RunUntil(const SearchSettings& settings, int points) {
    const pid_t child = ::fork();
    if (child == 0) {
      int left = points;
      SearchEvents events;
      events.at = [&](const char*) {
        if (--left == 0) ::_exit(9);
      };
      ::_exit(Run(settings, events).end ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TemporaryFolder folder_;
  std::string path_;
  std::function<std::string(const std::string& source)> artifact_;
};

TEST_F(Searching, ATunedSpaceIsSearchedToItsEnd) {
  const Ended ended = Run(Settings());
  ASSERT_TRUE(ended.end) << ended.end.error().message;
  EXPECT_EQ(ended.told.size(), 35u);  // all points, two finalists
  EXPECT_EQ(ended.spent.evaluations, 35);
  EXPECT_FALSE(ended.budget_ended);
  const Recorded recorded = Read();
  EXPECT_EQ(recorded.results, ended.told);
  EXPECT_EQ(recorded.intents, 35);
  EXPECT_EQ(recorded.verdicts, 35);
  // Finalists are judged alone, at all sizes.
  const auto first = nlohmann::json::parse(ended.requests.front());
  const auto last = nlohmann::json::parse(ended.requests.back());
  EXPECT_EQ(last["candidates"].size(), 1u);
  EXPECT_FALSE(last["terms"].value("one_size", false));
  EXPECT_TRUE(first["terms"].value("one_size", false));
  EXPECT_FALSE(ended.confirmed.empty());
}

TEST_F(Searching, ABudgetKeepsRoomForTheFinalists) {
  SearchSettings settings = Settings();
  settings.budget.evaluations = 12;
  const Ended ended = Run(settings);
  ASSERT_TRUE(ended.end);
  EXPECT_EQ(ended.spent.evaluations, 12);
  EXPECT_TRUE(ended.budget_ended);
  EXPECT_THAT(ended.told[10], HasSubstr("confirm/"));
  EXPECT_FALSE(ended.confirmed.empty());
}

TEST_F(Searching, WhatHasEndedIsNotDoneAgain) {
  const Ended first = Run(Settings());
  const Ended second = Run(Settings());
  EXPECT_TRUE(second.end);
  EXPECT_THAT(second.told, IsEmpty());
  EXPECT_EQ(second.confirmed, first.confirmed);
  EXPECT_EQ(second.spent.evaluations, first.spent.evaluations);
}

TEST_F(Searching, KilledAtAnyPointItGoesOnAsTheSameRun) {
  Run(Settings());
  const Recorded whole = Read();
  // ASSAY_KILL_STEPS=100 makes it a campaign of thousands.
  const char* asked = std::getenv("ASSAY_KILL_STEPS");
  const int steps = asked == nullptr ? 3 : std::atoi(asked);
  int kills = 0, lost = 0;
  for (int step = 1; step <= steps; ++step) {
    Forget();
    // Each process gets a little further than the one before.
    int rounds = 0, end = 9;
    for (; end == 9 && rounds < 200; ++rounds)
      end = RunUntil(Settings(), 1 + (7 * step + 3 * rounds) % 11);
    kills += rounds - 1;
    ASSERT_EQ(end, 0) << step;
    const Recorded recorded = Read();
    EXPECT_EQ(recorded.results, whole.results) << step;
    EXPECT_EQ(recorded.verdicts, whole.verdicts) << step;
    // It costs what an undisturbed run does, and one judgement a kill at most: the worker's. The
    // other candidates that were in hand waited.
    const Ended again = Run(Settings());
    EXPECT_EQ(again.spent.evaluations, recorded.verdicts + recorded.lost_evaluations) << step;
    EXPECT_LT(recorded.lost_evaluations, rounds) << step;
    EXPECT_EQ(recorded.intents, recorded.verdicts + recorded.lost) << step;
    lost += static_cast<int>(recorded.lost - recorded.lost_evaluations);
  }
  EXPECT_GT(lost, 0);  // several were in hand at some kill
  EXPECT_GT(kills, 20 * std::min(steps, 3));
  RecordProperty("kills", kills);
}

TEST_F(Searching, ABudgetIsNeverExceededByKills) {
  SearchSettings settings = Settings();
  settings.budget.evaluations = 20;
  for (const int step : {3, 7, 8, 13, 19, 30}) {
    Forget();
    int rounds = 0;
    while (RunUntil(settings, step) == 9 && rounds < 200) ++rounds;
    const Recorded recorded = Read();
    EXPECT_LE(std::ssize(recorded.results) + recorded.lost_evaluations, 20) << step;
    EXPECT_LT(rounds, 200);
  }
}

TEST_F(Searching, WhatBuildsToTheSameIsJudgedOnce) {
  // B says nothing: six artifacts, one for each A.
  artifact_ = [](const std::string& source) {
    const TuneSpace space = *ParseTuneSpace(source, "cpp");
    const auto values = ValuesAt(space, TunePoint(space.tunes.size(), 0));
    return Sha256Hex(std::to_string(values.at("A")));
  };
  SearchSettings settings = Settings("exhaustive");
  settings.finalists = 1;
  int duplicates = 0;
  SearchEvents events;
  events.result = [&](const Step&, const StepResult& result, const SearchView&) {
    duplicates += result.duplicate_of.empty() ? 0 : 1;
  };
  const Ended ended = Run(settings, events);
  ASSERT_TRUE(ended.end) << ended.end.error().message;
  EXPECT_EQ(ended.told.size(), 34u);  // all points, one finalist
  EXPECT_EQ(duplicates, 27);
  EXPECT_EQ(ended.spent.evaluations, 7);
  EXPECT_EQ(Read().verdicts, 7);
  // Another process reads the same, also where it ended halfway.
  const Ended again = Run(settings);
  ASSERT_TRUE(again.end) << again.end.error().message;
  EXPECT_THAT(again.told, IsEmpty());
  Forget();
  int rounds = 0;
  while (RunUntil(settings, 11 + rounds) == 9 && rounds < 50) ++rounds;
  EXPECT_GT(rounds, 1);
  EXPECT_EQ(Read().verdicts, 7);
}

TEST_F(Searching, ARaceIsAgainstTheBestSoFar) {
  const auto bounds = [](const Ended& ended) {
    std::vector<double> all;
    for (const std::string& request : ended.requests)
      all.push_back(nlohmann::json::parse(request)["terms"].value("bound", 0.0));
    return all;
  };
  for (const double bound : bounds(Run(Settings()))) EXPECT_EQ(bound, 0);
  Forget();
  SearchSettings settings = Settings();
  settings.races = true;
  const std::vector<double> raced = bounds(Run(settings));
  EXPECT_EQ(raced.front(), 0);
  EXPECT_TRUE(std::is_sorted(raced.begin(), raced.end() - 2));
  EXPECT_GT(*(raced.end() - 3), 1.5);
  // Finalists are measured whole.
  EXPECT_EQ(*(raced.end() - 1), 0);
  EXPECT_EQ(*(raced.end() - 2), 0);
}

TEST_F(Searching, AnInterruptionCostsNothing) {
  std::atomic<bool> interrupted = false;
  SearchEvents events;
  int results = 0;
  events.result = [&](const Step&, const StepResult&, const SearchView&) {
    if (++results == 4) interrupted = true;
  };
  const Ended first = Run(Settings(), events, StopToken(interrupted));
  ASSERT_FALSE(first.end);
  EXPECT_EQ(first.end.error().kind, ErrorKind::kInterrupted);
  EXPECT_GT(Read().released, 0);
  const Ended second = Run(Settings());
  ASSERT_TRUE(second.end);
  EXPECT_EQ(second.spent.evaluations, 35);
  EXPECT_EQ(first.told.size() + second.told.size(), 35u);
}

TEST_F(Searching, ARequestThatFailedIsRepeatedOnce) {
  int requests = 0;
  const auto trouble = [&](const std::string& request) -> std::optional<std::vector<std::string>> {
    if (++requests % 2 == 0) return std::nullopt;
    return std::vector{
        ErrorLine(nlohmann::json::parse(request)["id"], {ErrorKind::kEnvironment, "no memory"})};
  };
  const Ended ended = Run(Settings(), {}, StopToken(), trouble);
  ASSERT_TRUE(ended.end) << ended.end.error().message;
  EXPECT_EQ(Read().verdicts, 35);
}

TEST_F(Searching, WhereNothingCanBeJudgedItEndsAndCanBeGoneOnWith) {
  const auto dies = [](const std::string&) {
    return std::optional(std::vector<std::string>{ScriptedFleet::kDies});
  };
  const Ended ended = Run(Settings(), {}, StopToken(), dies);
  ASSERT_FALSE(ended.end);
  EXPECT_EQ(ended.end.error().kind, ErrorKind::kEnvironment);
  EXPECT_THAT(ended.end.error().message, HasSubstr("was killed by signal 9"));
  EXPECT_TRUE(Run(Settings()).end);
}

TEST_F(Searching, RecordsOfAnotherFormAreAnErrorAndNoCrash) {
  const auto store = SqliteStore::Open(path_).value();
  ASSERT_TRUE(Journal::Begin(*store, Settings()));
  NewRecord strange;
  strange.facts = {RecordKind::kStep, "judge/0", Settings().id, "softmax", ""};
  strange.content = R"({"key":"judge/0","parents":"none"})";
  ASSERT_TRUE(store->Append(std::vector{strange}));
  EXPECT_THAT(Journal::Open(*store, "").error().message, HasSubstr("record 2 is not as"));
  strange.facts.kind = RecordKind::kSearch;
  strange.content = R"({"seed":5})";
  ASSERT_TRUE(store->Append(std::vector{strange}));
  EXPECT_THAT(Journal::Open(*store, "").error().message, HasSubstr("record 3 is not as"));
}

// Judges nothing: each wait takes a second, and the process is killed in one of them.
class KilledWhileWaiting : public VerdictSource {
 public:
  KilledWhileWaiting(int64_t* now_ns, int waits) : now_ns_(now_ns), waits_(waits) {}
  void Add(JudgeTask) override {}
  void Know(const std::string&) override {}
  void Race(double) override {}
  Result<std::vector<JudgedTask>> Wait(int) override {
    *now_ns_ += 1'000'000'000;
    if (--waits_ == 0) ::_exit(9);
    return std::vector<JudgedTask>();
  }
  std::vector<JudgedTask> Stop() override { return {}; }
  size_t judged_at_once() const override { return 1; }

 private:
  int64_t* now_ns_;
  int waits_;
};

// A process that was killed before any of its verdicts came left no trace of its time: a search
// that was killed again and again went on for ever.
TEST_F(Searching, TheSecondsOfKilledProcessesCount) {
  SearchSettings settings = Settings();
  settings.budget.seconds = 300;
  int rounds = 0;
  while (true) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto store = SqliteStore::Open(path_).value();
      Journal journal = rounds == 0 ? Journal::Begin(*store, settings).value()
                                    : Journal::Open(*store, "").value();
      const auto tuner = Tuner::Make(settings.strategy, settings.from_name, settings.from_source,
                                     "cpp", settings.seed, static_cast<size_t>(settings.width))
                             .value();
      int64_t now_ns = 7'000'000'000;  // of another start of the machine
      KilledWhileWaiting judges(&now_ns, 45);
      SearchEvents events;
      events.now_ns = [&] { return now_ns; };
      ::_exit(SearchEngine({journal, *tuner, judges}, events).Run(StopToken()) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WEXITSTATUS(status) != 9 || ++rounds == 20) break;
    // 40 of its 45 seconds are known.
    EXPECT_NEAR(Journal::Open(*SqliteStore::OpenToRead(path_).value(), "")->seconds(),
                40.0 * rounds, 1e-6);
  }
  // Of 300 s, 160 are spent, and so many are kept for two finalists.
  EXPECT_EQ(rounds, 4);
}

TEST_F(Searching, AWishReachesTheStrategyInItsPlace) {
  struct Listener : Strategy {
    std::vector<std::string> heard;
    std::vector<Step> Begin() override { return {}; }
    std::vector<Step> Heard(const Step&, const StepResult&) override { return {}; }
    std::vector<Step> Steered(const std::string& action, const std::string& text) override {
      heard.push_back(action + ": " + text);
      return {};
    }
  };
  const auto store = SqliteStore::Open(path_).value();
  EXPECT_FALSE(RecordWish(*store, "", "inject", "x"));
  Journal begun = Journal::Begin(*store, Settings()).value();
  ASSERT_TRUE(RecordWish(*store, "0123456789ab", "inject", "keep rows in registers"));
  for (int process = 0; process < 2; ++process) {  // the second one reads that it was heeded
    Journal journal = Journal::Open(*store, "").value();
    ScriptedFleet fleet(ScoreOf);
    Judges judges(fleet, {}, {}, {});
    Listener listener;
    EXPECT_TRUE(SearchEngine({journal, listener, judges, nullptr}, {}).Run(StopToken()));
    EXPECT_THAT(listener.heard, ElementsAre("inject: keep rows in registers"));
  }
}

}  // namespace
}  // namespace assay
