// Events of a worker (docs/worker.md), written and read as lines of JSON without their end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/event.h"
#include "model/problem.h"
#include "model/verdict.h"

namespace assay {

struct WorkerEvent {
  enum class Kind {
    kReady,
    kProgress,
    kVerdict,
    kUnjudged,  // in place of a verdict: the candidate needs what this machine lacks
    kKnown,     // in place of a verdict: an artifact of the request's `known`, or an earlier one's
    kDescription,
    kDone,
    kFailed,
    kEnded,  // no line says it: the process has ended
  };
  Kind kind = Kind::kReady;
  std::string id;  // of the request that it is about; empty: of none
  // Place in the request; 0 for a description, nullopt for events that are about no candidate.
  std::optional<size_t> candidate;
  std::string stage, text;             // kProgress: JudgeStageName, and words for people
  double fraction = 0;                 // kProgress: of the stage
  std::string verdict;                 // kVerdict: as JSON
  std::string artifact;                // kKnown
  std::vector<std::string> signature;  // kDescription: an argument a line
  Error error;                         // kUnjudged, kFailed, kEnded
  std::string line;                    // as the worker said it

  // True for an answer on one candidate: kVerdict, kUnjudged, kKnown or kDescription.
  bool IsAnswer() const;
  bool IsFailure() const { return kind == Kind::kFailed || kind == Kind::kEnded; }
};

// Returns nullopt for a line that is no event, or one that names no candidate and has to.
std::optional<WorkerEvent> ParseWorkerEvent(const std::string& line);

// Return lines of events.
std::string ReadyLine(std::string_view version);
std::string ProgressLine(const std::string& id, const ProgressEvent& event);
std::string VerdictLine(const std::string& id, size_t candidate, const Verdict& verdict);
std::string UnjudgedLine(const std::string& id, size_t candidate, const Error& error);
std::string KnownLine(const std::string& id, size_t candidate, const std::string& artifact);
// Describes the session's problem: arguments with shapes and dtypes.
std::string DescriptionLine(const std::string& id, const ProblemRequest& problem,
                            const ProblemDescription& description);
std::string DoneLine(const std::string& id);
std::string ErrorLine(const std::string& id, const Error& error);

}  // namespace assay
