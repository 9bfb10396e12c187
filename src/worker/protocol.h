// The worker's requests and events, as lines of JSON (docs/worker.md).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"
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
// The terms that differ from the defaults, as a request has them: equal terms have equal text, also
// from another version of Assay with more of them.
std::string TermsText(const AskedTerms& terms);

// Return lines of events, without the end of line.
std::string ReadyLine(std::string_view version);
std::string ProgressLine(const std::string& id, const ProgressEvent& event);
std::string VerdictLine(const std::string& id, size_t candidate, const Verdict& verdict);
// In place of a verdict: the candidate needs what this machine lacks.
std::string UnjudgedLine(const std::string& id, size_t candidate, const Error& error);
// In place of a verdict: an artifact of the request's `known`, or of an earlier candidate.
std::string KnownLine(const std::string& id, size_t candidate, const std::string& artifact);
// Describes the session's problem: arguments with shapes and dtypes.
std::string DescriptionLine(const std::string& id, const ProblemRequest& problem,
                            const ProblemDescription& description);
std::string DoneLine(const std::string& id);
std::string ErrorLine(const std::string& id, const Error& error);

}  // namespace assay
