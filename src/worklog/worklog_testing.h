// Matches for tests, without an archive.
#pragma once

#include <string>
#include <vector>

#include "base/hash.h"
#include "model/sample_verdicts.h"
#include "model/verdict_json.h"
#include "worklog/check.h"
#include "worklog/worklog.h"

namespace assay {

// A correct verdict with this speed against the reference.
inline Verdict SpeedVerdict(const std::string& id, double speedup) {
  Verdict verdict = SampleVerdict(speedup > 1 ? Outcome::kFaster : Outcome::kSlower);
  verdict.id = id;
  BaselineResult& result = verdict.speed->baselines.at(verdict.speed->headline);
  result.speedup = speedup;
  result.ci_low = speedup * 0.99;
  result.ci_high = speedup * 1.01;
  result.decision = speedup > 1 ? "faster" : "slower";
  result.candidate_time_ns = result.time_ns / speedup;
  result.pairs = 9;
  return verdict;
}

// A verdict on one version of a MatchBuilder against another.
inline Verdict DuelVerdict(const std::string& id, const std::string& version,
                           const std::string& other, double speedup) {
  Verdict verdict = SpeedVerdict(id, speedup);
  verdict.candidate.hash = Sha256Hex("// " + version + "\n");
  verdict.speed->against = CandidateFile{other + ".cpp", Sha256Hex("// " + other + "\n")};
  return verdict;
}

// Adds facts one after the other, as the archive would, and the words that go with them.
class MatchBuilder {
 public:
  MatchBuilder() {
    MatchBegun begun{"0123456789ab", "softmax", Sha256Hex("problem"), "{}", 1};
    worklog_.words.id = begun.worklog;
    worklog_.words.problem = begun.problem;
    worklog_.words.tier = begun.tier;
    Note(begun);
  }

  // Returns the hash of its record.
  std::string Note(const MatchEvent& event, std::vector<std::string> outside = {}) {
    const std::string content = MatchNoteToJson({event, last_, std::move(outside)});
    last_ = Add(RecordKind::kNote, MatchNoteName(event), content);
    return last_;
  }

  MatchBuilder& Predict(double ratio) {
    const Predicted said{"memory", ratio, "Three passes become one."};
    worklog_.words.predictions.push_back({Note(said), said.regime, said.reason, said.ratio});
    return *this;
  }

  MatchBuilder& Ask(int series, const std::string& prompt) {
    Note(SeriesBegun{series, Player::kModel, "inbox:prompts", "", prompt, ""});
    return *this;
  }

  MatchBuilder& Measure(Player player, const std::string& version, const std::string& why,
                        const Verdict& verdict, int series = 1) {
    int answer = 0;
    if (player == Player::kModel) {
      answer = ++answers_;
      Note(Answered{series, answer, "", "m", "stop", "an answer", "", 0, 0});
    }
    const std::string source = "// " + version + "\n";
    const Attempted said{version,           player, "versions/" + version + ".cpp",
                         Sha256Hex(source), why,    answer};
    worklog_.words.versions.push_back({version, said.file, Note(said), why});
    worklog_.sources[said.file] = source;
    const std::string hash = Add(RecordKind::kVerdict, version, VerdictToJson(verdict, -1));
    Note(Measured{version, hash, ""});
    return *this;
  }

  MatchBuilder& Duel(const std::string& version, const std::string& other, const Verdict& verdict) {
    const std::string hash = Add(RecordKind::kVerdict, version, VerdictToJson(verdict, -1));
    Note(Dueled{version, other, hash, ""});
    return *this;
  }

  // A verdict that was judged besides.
  MatchBuilder& TakeIn(const Verdict& verdict, const std::string& why) {
    Note(Besides{Add(RecordKind::kVerdict, "other.cpp", VerdictToJson(verdict, -1)), why});
    return *this;
  }

  Words& words() { return worklog_.words; }
  std::vector<Fact>& facts() { return facts_; }

  Worklog Build() {
    worklog_.match = ReadMatch(facts_).value();
    return worklog_;
  }

 private:
  std::string Add(RecordKind kind, const std::string& name, const std::string& content) {
    Fact fact;
    fact.record.sequence = static_cast<int64_t>(facts_.size()) + 1;
    fact.record.facts = {kind, name, "", "softmax", ""};
    fact.record.time = "2026-11-27T10:00:00Z";
    fact.record.content = Sha256Hex(content);
    fact.record.parent = facts_.empty() ? std::string(kFirstParent) : facts_.back().record.hash;
    fact.record.hash = RecordHash(fact.record);
    fact.content = content;
    facts_.push_back(fact);
    return fact.record.hash;
  }

  Worklog worklog_;
  std::vector<Fact> facts_;
  std::string last_;
  int answers_ = 0;
};

inline Witness GoodWitness() {
  Witness witness;
  witness.asked = true;
  witness.archive = "archive.sqlite";
  return witness;
}

// A match that the author loses against the reference and against the model, and explains.
inline MatchBuilder LostMatch() {
  MatchBuilder builder;
  builder.Predict(2)
      .Measure(Player::kHand, "v1", "v1 fuses the 3 passes, to save two trips to memory",
               SpeedVerdict("aaaaaaaaaaa1", 0.5))
      .Measure(Player::kHand, "v2", "v1 was at 20% of the bound, so v2 takes 8 lanes",
               SpeedVerdict("aaaaaaaaaaa2", 0.7))
      .Measure(Player::kHand, "v3", "v2 waits for exp; v3 takes a polynomial of degree 5",
               SpeedVerdict("aaaaaaaaaaa3", 0.9))
      .Ask(1, "Write a kernel.")
      .Measure(Player::kModel, "m1", "Answer 1, as it came.", SpeedVerdict("bbbbbbbbbbb1", 1.6));
  Words& words = builder.words();
  words.claims.push_back({"m1", Mechanism::kVectorising, "16 lanes against my 8"});
  words.claims.push_back({"v3", Mechanism::kLessWork, "degree 5 in place of exp: 1.3 times"});
  words.stuck.push_back({Player::kHand, "An afternoon on prefetching that changed nothing."});
  words.stuck.push_back({Player::kModel, "Nothing: it was right at the first try."});
  words.prose[static_cast<size_t>(Section::kHeadToHead)] =
      "m1 beats v3 by 1.8 times. It keeps a row in registers and takes 16 lanes at a time, where "
      "v3 stores the row between its passes and takes 8.";
  return builder;
}

}  // namespace assay
