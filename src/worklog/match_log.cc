#include "worklog/match_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "model/verdict_json.h"

namespace assay {
namespace {

NewRecord NoteRecord(const MatchBegun& begun, const MatchNote& note) {
  NewRecord record;
  record.facts = {RecordKind::kNote, MatchNoteName(note.event), begun.worklog, begun.problem, ""};
  record.content = MatchNoteToJson(note);
  return record;
}

int64_t LastSequence(std::span<const Fact> facts) {
  int64_t last = 0;
  for (const Fact& fact : facts) last = std::max(last, fact.record.sequence);
  return last;
}

}  // namespace

Result<std::vector<std::string>> VerdictsOn(Store& store, const std::string& problem,
                                            const std::string& reference_hash, int64_t after) {
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.problem = problem;
  query.after = after;
  query.limit = kOutsideMax;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, store.Find(query));
  std::vector<std::string> ids;
  for (const Record& record : found) {
    const auto content = store.Get(record.content);
    if (!content) continue;
    const auto verdict = VerdictFromJson(*content);
    if (verdict && verdict->problem.hash == reference_hash) ids.push_back(record.facts.id);
  }
  std::reverse(ids.begin(), ids.end());
  return ids;
}

MatchLog::MatchLog(Store& store, WorklogFolder& folder, const Match& match)
    : store_(store), folder_(folder), begun_(match.begun), last_(match.last) {
  sequence_ = LastSequence(folder.facts());
}

Result<std::vector<std::string>> MatchLog::Outside() {
  ASSAY_ASSIGN_OR_RETURN(std::vector<std::string> ids,
                         VerdictsOn(store_, begun_.problem, begun_.reference_hash, sequence_));
  std::erase(ids, verdict_id_);
  return ids;
}

Result<FactPlace> MatchLog::Record(const MatchEvent& event) {
  MatchNote note{event, last_, {}};
  ASSAY_ASSIGN_OR_RETURN(note.outside, Outside());
  const NewRecord record = NoteRecord(begun_, note);
  ASSAY_ASSIGN_OR_RETURN(const auto added, store_.Append(std::vector{record}));
  const assay::Record& kept = added.front();
  last_ = kept.hash;
  sequence_ = kept.sequence;
  ASSAY_RETURN_IF_ERROR(folder_.AddFacts(std::vector<Fact>{{kept, record.content}}));
  return FactPlace{kept.hash, kept.sequence, kept.time};
}

Result<std::string> MatchLog::KeepVerdict(const JudgedSource& judged, const Verdict& verdict) {
  const std::vector<NewRecord> records = RecordsOfVerdict(judged, verdict);
  ASSAY_ASSIGN_OR_RETURN(const auto added, store_.Append(records));
  const auto kept = std::find_if(added.begin(), added.end(), [](const assay::Record& each) {
    return each.facts.kind == RecordKind::kVerdict;
  });
  if (kept == added.end()) return EnvironmentError("the archive did not keep the verdict");
  ASSAY_RETURN_IF_ERROR(folder_.AddFacts(std::vector<Fact>{{*kept, records.back().content}}));
  verdict_id_ = verdict.id;
  return kept->hash;
}

Result<void> MatchLog::RecordVerdict(const std::string& version, const JudgedSource& judged,
                                     const Verdict& verdict) {
  ASSAY_ASSIGN_OR_RETURN(const std::string hash, KeepVerdict(judged, verdict));
  ASSAY_RETURN_IF_ERROR(Record(Measured{version, hash, ""}));
  return {};
}

Result<void> MatchLog::RecordDuel(const std::string& version, const std::string& other,
                                  const JudgedSource& judged, const Verdict& verdict) {
  ASSAY_ASSIGN_OR_RETURN(const std::string hash, KeepVerdict(judged, verdict));
  ASSAY_RETURN_IF_ERROR(Record(Dueled{version, other, hash, ""}));
  return {};
}

Result<Verdict> MatchLog::RecordBesides(const std::string& id, const std::string& why) {
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.reference = id;
  query.limit = 2;
  ASSAY_ASSIGN_OR_RETURN(const auto found, store_.Find(query));
  if (found.empty() || id.empty())
    return UsageError(fmt::format(
        "the archive has no verdict {}: assay worklog check and assay archive list show ids", id));
  if (found.size() > 1)
    return UsageError(fmt::format("{} is the beginning of several verdicts: give all of it", id));
  const assay::Record& record = found.front();
  ASSAY_ASSIGN_OR_RETURN(std::string content, store_.Get(record.content));
  ASSAY_ASSIGN_OR_RETURN(Verdict verdict, VerdictFromJson(content));
  if (verdict.problem.hash != begun_.reference_hash)
    return UsageError(fmt::format("verdict {} is not on the reference of this match", verdict.id));
  for (const Fact& fact : folder_.facts())
    if (fact.record.hash == record.hash)
      return UsageError(fmt::format("verdict {} stands in the worklog", verdict.id));
  ASSAY_RETURN_IF_ERROR(folder_.AddFacts(std::vector<Fact>{{record, std::move(content)}}));
  verdict_id_ = verdict.id;
  ASSAY_RETURN_IF_ERROR(Record(Besides{record.hash, why}));
  return verdict;
}

Result<Witness> AskArchive(Store& store, const std::string& path, std::span<const Fact> facts,
                           const std::string& worklog) {
  Witness witness;
  witness.asked = true;
  witness.archive = path;
  std::set<std::string> here;
  for (const Fact& fact : facts) {
    here.insert(fact.record.hash);
    RecordQuery query;
    query.reference = fact.record.hash;
    query.limit = 1;
    ASSAY_ASSIGN_OR_RETURN(const auto found, store.Find(query));
    if (found.empty() || found.front().hash != fact.record.hash)
      witness.unknown.push_back(fact.record.sequence);
  }
  RecordQuery query;
  query.kind = RecordKind::kNote;
  query.id = worklog;
  query.oldest_first = true;
  ASSAY_ASSIGN_OR_RETURN(const auto notes, store.Find(query));
  for (const Record& record : notes) {
    ASSAY_ASSIGN_OR_RETURN(std::string content, store.Get(record.content));
    const auto note = MatchNoteFromJson(content);
    if (!note) continue;
    // A verdict goes with the event that names it.
    const std::string verdict_hash = VerdictHashOf(note->event);
    if (!verdict_hash.empty() && here.insert(verdict_hash).second) {
      RecordQuery of_verdict;
      of_verdict.reference = verdict_hash;
      of_verdict.limit = 1;
      ASSAY_ASSIGN_OR_RETURN(const auto verdicts, store.Find(of_verdict));
      for (const Record& verdict : verdicts) {
        ASSAY_ASSIGN_OR_RETURN(std::string text, store.Get(verdict.content));
        witness.missing.push_back({verdict, std::move(text)});
      }
    }
    if (!here.contains(record.hash)) witness.missing.push_back({record, std::move(content)});
  }
  return witness;
}

}  // namespace assay
