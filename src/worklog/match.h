// A match as its facts tell it: predictions, versions with their verdicts, prompts and answers, in
// the order of the archive. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"
#include "worklog/event.h"
#include "worklog/fact.h"

namespace assay {

// A fact's place in the archive.
struct FactPlace {
  std::string hash;  // of the record
  int64_t sequence = 0;
  std::string time;
};

struct PredictionFact {
  FactPlace place;
  Predicted said;
};

struct SeriesFact {
  FactPlace place;
  SeriesBegun said;
};

struct AnswerFact {
  FactPlace place;
  Answered said;
};

struct VersionFact {
  FactPlace place;  // of the attempt, before the measurement
  Attempted said;
  int prediction = -1;             // index of the last one sealed before
  std::optional<Verdict> verdict;  // nullopt: see `trouble`; empty trouble: it has no end yet
  FactPlace verdict_place;
  std::string trouble;
  std::string refuted;  // id of another verdict of the match that found this source wrong

  bool Correct() const {
    return refuted.empty() && verdict && verdict->correctness && verdict->correctness->passed;
  }
  // The headline baseline's result; null: no speed was measured.
  const BaselineResult* Speed() const;
};

// A verdict that was judged beside the versions.
struct BesidesFact {
  FactPlace place;
  Besides said;
  std::optional<Verdict> verdict;  // nullopt: it is missing from the facts
};

struct DuelFact {
  FactPlace place;
  Dueled said;
  std::optional<Verdict> verdict;  // nullopt: see the trouble

  // Of the version against the other; null: no speed was measured.
  const BaselineResult* Speed() const;
  bool Settled() const { return Speed() != nullptr && Speed()->decision != "unsettled"; }
};

struct Match {
  FactPlace place;
  MatchBegun begun;
  std::vector<PredictionFact> predictions;
  std::vector<SeriesFact> series;
  std::vector<AnswerFact> answers;
  std::vector<VersionFact> versions;
  std::vector<BesidesFact> besides;
  std::vector<DuelFact> duels;
  // Ids of verdicts on the same reference that are none of the worklog's. `before`: that stood in
  // the archive when the first prediction was sealed.
  std::vector<std::string> outside, before;
  std::string last;  // hash of the last note
  // Notes that are missing between two that are there, or are out of order; empty: the chain is
  // whole.
  std::vector<std::string> breaks;

  std::vector<const VersionFact*> Of(Player player) const;
  const VersionFact* Find(std::string_view version) const;
  const AnswerFact* FindAnswer(int number) const;
  // Among the correct versions with a speed, of each source the first: the one that IsBetter than
  // the others; null: none.
  const VersionFact* Best(Player player) const;
  // "v4" after "v3".
  std::string NextVersion(Player player) const;
  // The duel of two versions, either way around, that counts: the first with a decision, else the
  // last; null: none.
  const DuelFact* Duel(const VersionFact& version, const VersionFact& other) const;
  // The version with this source, if it may be measured again: no measurement of it came to a
  // decision. Null: none.
  const VersionFact* Undecided(Player player, std::string_view source_hash) const;

 private:
  // Whether the duel's verdict, which has a speed, is on the sources of both versions.
  bool IsOf(const DuelFact& duel) const;
};

// The better of two versions with a speed: one with a decision before one without, then by the
// lower end of the interval, then by the median.
bool IsBetter(const VersionFact& version, const VersionFact& other);

// Errors (kUsage): the first fact is no beginning of a match, or a verdict cannot be read.
Result<Match> ReadMatch(std::span<const Fact> facts);

// Two speeds side by side: how many times as fast as `other` a version is, with the widest interval
// that theirs allow; by their duel where one stands. 0: one of them has no speed, or no interval.
struct SpeedRatio {
  double value = 0, low = 0, high = 0;
  bool settled = false;  // both judgements came to a decision
  bool direct = false;   // judged against each other, not by way of the reference
  bool Apart() const { return settled && value > 0 && (low > 1 || high < 1); }
};
SpeedRatio Between(const Match& match, const VersionFact& version, const VersionFact& other);

}  // namespace assay
