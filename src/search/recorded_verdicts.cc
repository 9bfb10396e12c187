#include "search/recorded_verdicts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "model/verdict_json.h"

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr int64_t kPageRecords = 1000;

// Without limits and looks afterwards, which decide how much is measured and not what.
std::string KindOfTerms(const std::string& terms) {
  Json json = Json::parse(terms, nullptr, false);
  if (!json.is_object()) return "";
  for (const char* name :
       {"budget_s", "futility", "bound", "probe", "profile", "timeout_s", "build_timeout_s"})
    json.erase(name);
  return json.dump();
}

}  // namespace

Result<RecordedVerdicts> RecordedVerdicts::Read(Store& archive, const std::string& problem,
                                                const std::string& screening_terms,
                                                const std::string& confirming_terms) {
  RecordedVerdicts verdicts(archive);
  const std::string screening = KindOfTerms(screening_terms);
  const std::string confirming = KindOfTerms(confirming_terms);
  std::map<std::string, std::string> kinds;  // of hashes of terms
  RecordQuery query;
  query.kind = RecordKind::kVerdict;
  query.problem = problem;
  query.oldest_first = true;
  query.limit = kPageRecords;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> page, archive.Find(query));
    if (page.empty()) break;
    query.after = page.back().sequence;
    for (const Record& record : page) {
      if (record.source.empty() || record.terms.empty()) continue;
      auto known = kinds.find(record.terms);
      if (known == kinds.end()) {
        ASSAY_ASSIGN_OR_RETURN(const std::string terms, archive.Get(record.terms));
        known = kinds.emplace(record.terms, KindOfTerms(terms)).first;
      }
      if (known->second == screening)
        verdicts.contents_[0].try_emplace(record.source, record.content);
      if (known->second == confirming)
        verdicts.contents_[1].try_emplace(record.source, record.content);
    }
  }
  if (verdicts.screened() == 0)
    return UsageError(
        fmt::format("the archive has no first look at a candidate for {} on these terms ({}): "
                    "name the one in which such a search is recorded",
                    problem, screening));
  return verdicts;
}

Result<std::vector<JudgedTask>> RecordedVerdicts::Wait(int) {
  if (waiting_.empty()) return std::vector<JudgedTask>();
  const JudgeTask task = std::move(waiting_.front());
  waiting_.erase(waiting_.begin());
  const auto& contents = contents_[task.confirms ? 1 : 0];
  const auto found = contents.find(Sha256Hex(task.source.content));
  JudgedTask judged{task.key, std::nullopt, std::nullopt, false, ""};
  if (found == contents.end()) {
    judged.error = Error{ErrorKind::kEnvironment, "no verdict on it is recorded"};
    judged.is_free = true;
    return std::vector{std::move(judged)};
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string content, archive_->Get(found->second));
  ASSAY_ASSIGN_OR_RETURN(judged.verdict, VerdictFromJson(content));
  return std::vector{std::move(judged)};
}

}  // namespace assay
