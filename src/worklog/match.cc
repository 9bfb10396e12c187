#include "worklog/match.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "model/verdict_json.h"

namespace assay {
namespace {

char LetterOf(Player player) {
  return player == Player::kHand ? 'v' : player == Player::kModel ? 'm' : 't';
}

const BaselineResult* Headline(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() || found->second.speedup <= 0 ? nullptr
                                                                               : &found->second;
}

// Few pairs give no interval: 0 stands for it.
double LowerEnd(const BaselineResult& result) { return std::max(result.ci_low, 0.0); }

// Builds a match note by note.
class MatchReader {
 public:
  explicit MatchReader(std::span<const Fact> facts) {
    for (const Fact& fact : facts)
      if (fact.record.facts.kind == RecordKind::kVerdict) verdicts_[fact.record.hash] = &fact;
  }

  Result<void> Take(const Fact& fact) {
    ASSAY_ASSIGN_OR_RETURN(const MatchNote note, MatchNoteFromJson(fact.content));
    const FactPlace place{fact.record.hash, fact.record.sequence, fact.record.time};
    if (note.previous != match_.last)
      match_.breaks.push_back(fmt::format("a fact is missing before record {} ({})",
                                          fact.record.sequence, fact.record.facts.name));
    match_.last = fact.record.hash;
    for (const std::string& id : note.outside) outside_.push_back(id);
    return std::visit([&](const auto& event) { return Add(place, event); }, note.event);
  }

  Match Finish() {
    for (VersionFact& version : match_.versions)
      if (version.verdict) own_.insert(version.verdict->id);
    for (const BesidesFact& each : match_.besides) TakeOther(each.verdict);
    for (const DuelFact& each : match_.duels) TakeOther(each.verdict);
    std::set<std::string> seen;
    for (const std::string& id : outside_)
      if (!own_.contains(id) && seen.insert(id).second) match_.outside.push_back(id);
    return std::move(match_);
  }

 private:
  Result<void> Add(const FactPlace& place, const MatchBegun& event) {
    match_.place = place;
    match_.begun = event;
    return {};
  }
  Result<void> Add(const FactPlace& place, const Predicted& event) {
    if (match_.predictions.empty()) match_.before = outside_;
    match_.predictions.push_back({place, event});
    return {};
  }
  Result<void> Add(const FactPlace& place, const SeriesBegun& event) {
    match_.series.push_back({place, event});
    return {};
  }
  Result<void> Add(const FactPlace& place, const Answered& event) {
    match_.answers.push_back({place, event});
    return {};
  }
  Result<void> Add(const FactPlace& place, const Attempted& event) {
    VersionFact version;
    version.place = place;
    version.said = event;
    version.prediction = static_cast<int>(match_.predictions.size()) - 1;
    match_.versions.push_back(std::move(version));
    return {};
  }
  Result<void> Add(const FactPlace& place, const Measured& event) {
    const auto found =
        std::find_if(match_.versions.rbegin(), match_.versions.rend(),
                     [&](const VersionFact& each) { return each.said.version == event.version; });
    if (found == match_.versions.rend()) {
      match_.breaks.push_back(fmt::format("record {} measures {}, which nothing announces",
                                          place.sequence, event.version));
      return {};
    }
    found->trouble = event.trouble;
    if (event.verdict_hash.empty()) return {};
    const auto verdict = verdicts_.find(event.verdict_hash);
    if (verdict == verdicts_.end()) {
      match_.breaks.push_back(fmt::format("the verdict on {} is missing", event.version));
      found->trouble = "its verdict is missing from the facts";
      return {};
    }
    const Record& record = verdict->second->record;
    ASSAY_ASSIGN_OR_RETURN(found->verdict, VerdictFromJson(verdict->second->content));
    found->verdict_place = {record.hash, record.sequence, record.time};
    return {};
  }
  Result<void> Add(const FactPlace& place, const Besides& event) {
    match_.besides.push_back({place, event, {}});
    return Fetch(event.verdict_hash, "a verdict that was judged besides",
                 &match_.besides.back().verdict);
  }
  Result<void> Add(const FactPlace& place, const Dueled& event) {
    match_.duels.push_back({place, event, {}});
    if (event.verdict_hash.empty()) return {};
    return Fetch(event.verdict_hash,
                 fmt::format("the verdict on {} against {}", event.version, event.other),
                 &match_.duels.back().verdict);
  }
  Result<void> Fetch(const std::string& hash, const std::string& what,
                     std::optional<Verdict>* verdict) {
    const auto found = verdicts_.find(hash);
    if (found == verdicts_.end()) {
      match_.breaks.push_back(fmt::format("{} is missing", what));
      return {};
    }
    ASSAY_ASSIGN_OR_RETURN(*verdict, VerdictFromJson(found->second->content));
    return {};
  }

  // A verdict of the match, beside those on versions: a source that it found wrong is wrong.
  void TakeOther(const std::optional<Verdict>& verdict) {
    if (!verdict) return;
    own_.insert(verdict->id);
    if (verdict->outcome != Outcome::kWrong) return;
    for (VersionFact& version : match_.versions)
      if (version.refuted.empty() && version.said.source_hash == verdict->candidate.hash)
        version.refuted = verdict->id;
  }

  Match match_;
  std::map<std::string, const Fact*> verdicts_;  // by the record's hash
  std::vector<std::string> outside_;
  std::set<std::string> own_;  // ids of the worklog's verdicts
};

}  // namespace

const BaselineResult* VersionFact::Speed() const {
  return Correct() ? Headline(*verdict) : nullptr;
}
const BaselineResult* DuelFact::Speed() const { return verdict ? Headline(*verdict) : nullptr; }

std::vector<const VersionFact*> Match::Of(Player player) const {
  std::vector<const VersionFact*> found;
  for (const VersionFact& version : versions)
    if (version.said.player == player) found.push_back(&version);
  return found;
}

const VersionFact* Match::Find(std::string_view version) const {
  for (const VersionFact& each : versions)
    if (each.said.version == version) return &each;
  return nullptr;
}

const AnswerFact* Match::FindAnswer(int number) const {
  for (const AnswerFact& each : answers)
    if (each.said.number == number) return &each;
  return nullptr;
}

const VersionFact* Match::Best(Player player) const {
  const VersionFact* best = nullptr;
  std::set<std::string> seen;
  for (const VersionFact* version : Of(player)) {
    if (version->Speed() == nullptr) continue;
    // A second run of the same source is luck, not a version.
    if (!seen.insert(version->said.source_hash).second) continue;
    if (best == nullptr || IsBetter(*version, *best)) best = version;
  }
  return best;
}

bool IsBetter(const VersionFact& version, const VersionFact& other) {
  const auto rank = [](const BaselineResult& speed) {
    return std::tuple(speed.decision != "unsettled", LowerEnd(speed), speed.speedup);
  };
  return rank(*version.Speed()) > rank(*other.Speed());
}

bool Match::IsOf(const DuelFact& duel) const {
  const VersionFact* version = Find(duel.said.version);
  const VersionFact* other = Find(duel.said.other);
  const auto& against = duel.verdict->speed->against;
  return version != nullptr && other != nullptr && against &&
         duel.verdict->candidate.hash == version->said.source_hash &&
         against->hash == other->said.source_hash;
}

const DuelFact* Match::Duel(const VersionFact& version, const VersionFact& other) const {
  const DuelFact* found = nullptr;
  for (const DuelFact& duel : duels) {
    const std::string& a = duel.said.version;
    const std::string& b = duel.said.other;
    const bool theirs = (a == version.said.version && b == other.said.version) ||
                        (b == version.said.version && a == other.said.version);
    if (!theirs || duel.Speed() == nullptr || !IsOf(duel)) continue;
    found = &duel;
    if (duel.Settled()) break;
  }
  return found;
}

const VersionFact* Match::Undecided(Player player, std::string_view source_hash) const {
  for (const VersionFact* version : Of(player)) {
    if (version->said.source_hash != source_hash) continue;
    const BaselineResult* speed = version->Speed();
    if (!version->verdict || version->verdict->outcome == Outcome::kUnsettled ||
        (speed != nullptr && speed->decision == "unsettled"))
      return version;
  }
  return nullptr;
}

std::string Match::NextVersion(Player player) const {
  return fmt::format("{}{}", LetterOf(player), Of(player).size() + 1);
}

Result<Match> ReadMatch(std::span<const Fact> facts) {
  MatchReader reader(facts);
  bool first = true;
  for (const Fact& fact : facts) {
    if (fact.record.facts.kind != RecordKind::kNote) continue;
    if (std::exchange(first, false) && fact.record.facts.name != "worklog/begun")
      return UsageError("the facts do not begin with the match's beginning: lines are missing");
    ASSAY_RETURN_IF_ERROR(reader.Take(fact));
  }
  if (first) return UsageError("there are no facts: begin by assay worklog init");
  return reader.Finish();
}

SpeedRatio Between(const Match& match, const VersionFact& version, const VersionFact& other) {
  if (const DuelFact* duel = match.Duel(version, other)) {
    const BaselineResult& speed = *duel->Speed();
    SpeedRatio ratio{speed.speedup, LowerEnd(speed), LowerEnd(speed) > 0 ? speed.ci_high : 0,
                     duel->Settled(), true};
    if (duel->said.version == version.said.version) return ratio;
    ratio.value = 1 / ratio.value;
    if (ratio.low <= 0) return ratio;
    std::swap(ratio.low, ratio.high);
    ratio.low = 1 / ratio.low;
    ratio.high = 1 / ratio.high;
    return ratio;
  }
  const BaselineResult* a = version.Speed();
  const BaselineResult* b = other.Speed();
  if (a == nullptr || b == nullptr) return {};
  SpeedRatio ratio{a->speedup / b->speedup};
  // Few pairs give no interval.
  if (a->ci_low <= 0 || b->ci_low <= 0) return ratio;
  ratio.low = a->ci_low / b->ci_high;
  ratio.high = a->ci_high / b->ci_low;
  ratio.settled = a->decision != "unsettled" && b->decision != "unsettled";
  return ratio;
}

}  // namespace assay
