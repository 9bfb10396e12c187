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

  bool Correct() const { return verdict && verdict->correctness && verdict->correctness->passed; }
  // The headline baseline's result; null: no speed was measured.
  const BaselineResult* Speed() const;
};

struct Match {
  FactPlace place;
  MatchBegun begun;
  std::vector<PredictionFact> predictions;
  std::vector<SeriesFact> series;
  std::vector<AnswerFact> answers;
  std::vector<VersionFact> versions;
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
  // The first version of its source with the largest speedup, among the correct ones; null: none.
  const VersionFact* Best(Player player) const;
  // "v4" after "v3".
  std::string NextVersion(Player player) const;
  // The version with this source, if it may be measured again: no measurement of it came to a
  // decision. Null: none.
  const VersionFact* Undecided(Player player, std::string_view source_hash) const;
};

// Errors (kUsage): the first fact is no beginning of a match, or a verdict cannot be read.
Result<Match> ReadMatch(std::span<const Fact> facts);

// Two speeds side by side: how many times as fast as `other` a version is, with the widest interval
// that theirs allow. 0: one of them has no speed, or no interval.
struct SpeedRatio {
  double value = 0, low = 0, high = 0;
  bool settled = false;  // both judgements came to a decision
  bool Apart() const { return settled && value > 0 && (low > 1 || high < 1); }
};
SpeedRatio Between(const VersionFact& version, const VersionFact& other);

}  // namespace assay
