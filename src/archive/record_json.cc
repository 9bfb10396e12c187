#include "archive/record_json.h"

#include <nlohmann/json.hpp>

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

// The document that the bytes are; else, as their text, a string.
Json Document(const std::string& bytes) {
  Json parsed = Json::parse(bytes, nullptr, false);
  return parsed.is_discarded() ? Json(bytes) : parsed;
}

// A step or a search may have a source that was never judged. Then nothing else has its text.
Result<std::string> SourceWithoutRecord(const Record& record, Store& store) {
  const RecordKind kind = record.facts.kind;
  if (record.source.empty() || (kind != RecordKind::kSearch && kind != RecordKind::kStep))
    return std::string();
  RecordQuery candidate;
  candidate.kind = RecordKind::kCandidate;
  candidate.reference = record.source;
  candidate.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, store.Find(candidate));
  if (!found.empty()) return std::string();
  return store.Get(record.source);
}

}  // namespace

Result<std::string> RecordToJson(const Record& record, Store& store) {
  const RecordFacts& facts = record.facts;
  Json json = {{"schema", "assay.archive/1"},
               {"sequence", record.sequence},
               {"kind", RecordKindName(facts.kind)},
               {"time", record.time},
               {"name", facts.name},
               {"id", facts.id},
               {"problem", facts.problem},
               {"outcome", facts.outcome},
               {"content", record.content},
               {"source", record.source},
               {"parent", record.parent},
               {"hash", record.hash}};
  ASSAY_ASSIGN_OR_RETURN(const std::string content, store.Get(record.content));
  if (facts.kind == RecordKind::kReference || facts.kind == RecordKind::kCandidate ||
      facts.kind == RecordKind::kNote)
    json["text"] = content;
  else
    json[facts.kind == RecordKind::kFailure ? "error" : RecordKindName(facts.kind)] =
        Document(content);
  ASSAY_ASSIGN_OR_RETURN(const std::string text, SourceWithoutRecord(record, store));
  if (!text.empty()) json["text"] = text;
  if (!record.terms.empty()) {
    ASSAY_ASSIGN_OR_RETURN(const std::string terms, store.Get(record.terms));
    json["terms"] = Document(terms);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace assay
