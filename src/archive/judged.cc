#include "archive/judged.h"

#include <nlohmann/json.hpp>

#include "model/outcome.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

std::vector<NewRecord> WithCandidate(const JudgedSource& judged, NewRecord result) {
  std::vector<NewRecord> records;
  if (!judged.content.empty())
    records.push_back(RecordOfFile(RecordKind::kCandidate, judged.path, "", judged.content));
  result.source = judged.content;
  result.terms = judged.terms;
  records.push_back(std::move(result));
  return records;
}

}  // namespace

NewRecord RecordOfFile(RecordKind kind, const std::string& name, const std::string& problem,
                       std::string content) {
  NewRecord record;
  record.facts = {kind, name, "", problem, ""};
  record.content = std::move(content);
  record.once = true;
  return record;
}

std::vector<NewRecord> RecordsOfVerdict(const JudgedSource& judged, const Verdict& verdict) {
  NewRecord record;
  record.facts = {RecordKind::kVerdict, judged.path, verdict.id, judged.problem,
                  std::string(OutcomeName(verdict.outcome))};
  record.content = VerdictToJson(verdict, -1);
  return WithCandidate(judged, std::move(record));
}

std::vector<NewRecord> RecordsOfFailure(const JudgedSource& judged, const Error& error) {
  using Json = nlohmann::ordered_json;
  const Json json = {{"kind", ErrorKindName(error.kind)}, {"message", error.message}};
  NewRecord record;
  record.facts = {RecordKind::kFailure, judged.path, "", judged.problem, ""};
  record.content = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return WithCandidate(judged, std::move(record));
}

}  // namespace assay
