#include "search/known_verdicts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "archive/sqlite_store.h"
#include "base/files.h"
#include "base/hash.h"
#include "search/engine.h"
#include "search/judges.h"
#include "search/replay.h"
#include "search/search_testing.h"
#include "search/tuner.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// Twelve variants.
constexpr const char* kSource =
    "#include <assay/kernel.h>\n//! tune A = 1 2 4 8\n//! tune B = 3 1 2\nint kernel;\n";

SearchSettings Settings(const std::string& id) {
  SearchSettings settings;
  settings.id = id;
  settings.seed = 5;
  settings.problem = "softmax";
  settings.terms = R"({"problem":"softmax"})";
  settings.screening_terms = R"({"problem":"softmax","one_size":true})";
  settings.strategy = "exhaustive";
  settings.proposer = "tuner";
  settings.from_name = "kernel.cpp";
  settings.from_source = kSource;
  settings.width = 3;
  settings.finalists = 1;
  settings.knows = true;
  return settings;
}

Result<std::unique_ptr<Strategy>> MakeTuner(const SearchSettings& settings) {
  ASSAY_ASSIGN_OR_RETURN(
      auto tuner, Tuner::Make(settings.strategy, settings.from_name, settings.from_source, "cpp",
                              settings.seed, static_cast<size_t>(settings.width)));
  return std::unique_ptr<Strategy>(std::move(tuner));
}

class Knowing : public ::testing::Test {
 protected:
  Knowing()
      : folder_(TemporaryFolder::Create().value()),
        store_(SqliteStore::Open((folder_.path() / "archive.sqlite").string()).value()) {}

  // Returns what it spent; the numbers of the outcomes are left in counts_, known_.
  int64_t Search(const SearchSettings& settings) {
    RecordQuery query;
    query.id = settings.id;
    Journal journal = store_->Find(query)->empty() ? Journal::Begin(*store_, settings).value()
                                                   : Journal::Open(*store_, settings.id).value();
    const auto tuner = MakeTuner(settings).value();
    ScriptedFleet fleet([](const std::string& source) {
      const int digit = Sha256Hex(source)[0] % 8;
      return digit == 0 ? 0 : 1.0 + digit;
    });
    fleet.artifact = [this](const std::string& source) { return Sha256Hex(built_by_ + source); };
    Judges judges(fleet, {}, {}, {});
    KnownVerdicts known(*store_, settings.problem, settings.screening_terms);
    SearchEngine engine({journal, *tuner, judges, nullptr, settings.knows ? &known : nullptr}, {});
    const auto end = engine.Run(StopToken());
    EXPECT_TRUE(end) << end.error().message;
    known_ = engine.table().known();
    counts_ = engine.table().counts();
    return engine.ledger().spent().evaluations;
  }

  TemporaryFolder folder_;
  std::unique_ptr<SqliteStore> store_;
  std::string built_by_ = "gcc";
  int64_t known_ = 0;
  std::map<std::string, int64_t> counts_;
};

TEST_F(Knowing, WhatAnEarlierSearchJudgedIsNotMeasuredAgain) {
  const int64_t first = Search(Settings("aaaaaaaaaaaa"));
  const auto counts = counts_;
  EXPECT_EQ(known_, 0);
  EXPECT_GE(first, 13);  // twelve first looks, and finalists
  const int64_t second = Search(Settings("bbbbbbbbbbbb"));
  // The first three were at the worker before a verdict said which machine this is.
  EXPECT_EQ(known_, 9);
  EXPECT_EQ(second, first - 9);
  EXPECT_EQ(counts_, counts);
  // Told with its origin, without a second record of the verdict.
  const Journal journal = Journal::Open(*store_, "bbbbbbbbbbbb").value();
  int64_t told = 0;
  for (const JournalEvent& event : journal.events()) {
    if (event.result.known.empty()) continue;
    ++told;
    EXPECT_EQ(event.cost, Spending());
    RecordQuery query;
    query.reference = event.result.known;
    EXPECT_EQ(store_->Find(query)->size(), 1u);
    EXPECT_EQ(store_->Find(query)->front().facts.id, event.result.verdict->id);
  }
  EXPECT_EQ(told, 9);
  // It is gone on with, and replayed, as it was.
  EXPECT_EQ(Search(Settings("bbbbbbbbbbbb")), second);
  EXPECT_EQ(known_, 9);
  const auto replayed = ReplaySearch(*store_, "bbbbbbbbbbbb", MakeTuner, [](const auto&) {});
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_FALSE(replayed->difference) << replayed->difference->place;
  EXPECT_EQ(replayed->same, replayed->records);
}

TEST_F(Knowing, OtherTermsAnotherBuildOrAWishJudgeAgain) {
  const int64_t first = Search(Settings("aaaaaaaaaaaa"));
  SearchSettings other = Settings("bbbbbbbbbbbb");
  other.screening_terms = R"({"problem":"softmax","one_size":true,"threads":2})";
  EXPECT_EQ(Search(other), first);
  SearchSettings again = Settings("cccccccccccc");
  again.knows = false;
  EXPECT_EQ(Search(again), first);
  built_by_ = "clang";
  EXPECT_EQ(Search(Settings("dddddddddddd")), first);
  EXPECT_EQ(known_, 0);
}

TEST(StandsFor, AsksForTheSameProblemMachineAndTools) {
  Verdict own = SampleVerdict(Outcome::kFaster);
  own.candidate.artifact = "a";
  EXPECT_TRUE(StandsFor(own, own, own.speed->threshold));
  const auto after = [&](auto&& change) {
    Verdict earlier = own;
    change(earlier);
    return StandsFor(earlier, own, own.speed->threshold);
  };
  EXPECT_FALSE(after([](Verdict& verdict) { verdict.problem.hash += "0"; }));
  EXPECT_FALSE(after([](Verdict& verdict) { verdict.problem.set["ROWS"] = "3"; }));
  EXPECT_FALSE(after([](Verdict& verdict) { verdict.machine.cpu = "another"; }));
  EXPECT_FALSE(after([](Verdict& verdict) { ++verdict.machine.threads; }));
  EXPECT_FALSE(after([](Verdict& verdict) { verdict.toolchain["compiler"] = "another"; }));
  EXPECT_FALSE(after([](Verdict& verdict) { verdict.candidate.artifact.clear(); }));
}

TEST(StandsFor, AsksForADecisionAboutTheCandidateAlone) {
  Verdict own = SampleVerdict(Outcome::kFaster);
  for (const auto& [outcome, stands] : {std::pair(Outcome::kSlower, true),
                                        {Outcome::kWrong, true},
                                        {Outcome::kUnsettled, false},
                                        {Outcome::kCrashed, false},
                                        {Outcome::kTimedOut, false},
                                        {Outcome::kOutOfMemory, false}}) {
    Verdict earlier = SampleVerdict(outcome);
    earlier.candidate.artifact = "a";
    earlier.problem = own.problem;
    if (earlier.speed) earlier.speed->threshold = 1;
    EXPECT_EQ(StandsFor(earlier, own, 1), stands) << OutcomeName(outcome);
  }
  // It lost a race against the best of another search: that says nothing about --p.
  Verdict raced = SampleVerdict(Outcome::kNotFaster);
  raced.candidate.artifact = "a";
  raced.problem = own.problem;
  raced.speed->threshold = 1.8;
  EXPECT_FALSE(StandsFor(raced, own, 1));
}

TEST_F(Knowing, ABuildThatNobodyNamedIsAnError) {
  KnownVerdicts known(*store_, "softmax", "{}");
  EXPECT_THAT(known.Find("a").error().message, HasSubstr("nobody named"));
}

}  // namespace
}  // namespace assay
