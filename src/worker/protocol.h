// Requests to a worker, as lines of JSON (docs/worker.md); worker_client/event.h has its answers.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/asked_terms.h"

namespace assay {

struct WorkerRequest {
  enum class Kind { kJudge, kCheck, kDescribe, kCancel, kShutdown };
  Kind kind = Kind::kJudge;
  std::string id;       // the client's; every event about it has it
  std::string cancels;  // kCancel: id of the request to end
  AskedTerms terms;
  std::vector<CandidateSource> candidates;
  // Artifacts that the client has verdicts for (Session::Asked); nullopt: all are judged.
  std::optional<std::set<std::string>> known;
};

// Parses a request's line. Errors (kUsage) name the field; `id` is set if it could be read.
Result<WorkerRequest> ParseWorkerRequest(const std::string& line, std::string* id);

// For clients: the line of a request to judge these candidates, or to check them alone, without its
// end. `known`: as in WorkerRequest.
std::string JudgeLine(const std::string& id, const AskedTerms& terms,
                      const std::vector<const CandidateSource*>& candidates,
                      const std::optional<std::set<std::string>>& known = std::nullopt);
// The line of a request to describe the problem of these terms.
std::string DescribeLine(const std::string& id, const AskedTerms& terms);
// The terms that differ from the defaults, as a request has them: equal terms have equal text, also
// from another version of Assay with more of them.
std::string TermsText(const AskedTerms& terms);

}  // namespace assay
