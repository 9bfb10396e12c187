// A candidate as a work of the queue: all that another machine needs to judge it, as JSON. The form
// is that of a server's job (runner/job.h).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "run/plan.h"
#include "runner/job.h"
#include "session/asked_terms.h"

namespace assay {

struct WorkRequest {
  TakenJob job;
  std::string version;     // of the Assay that asks
  std::string python;      // interpreter on the node; empty: the default
  bool fresh = false;      // by a worker that has judged nothing before
  double seconds_max = 0;  // of the judgement; 0: the pilot's own bound
  // Artifacts that the asking process has verdicts for: a candidate that builds to one of them ends
  // with the worker's `known` event for a verdict. nullopt: all are judged.
  std::optional<std::set<std::string>> known;
  // The problem as the asking machine names it: used where the node has the same file there.
  std::string path, path_size, path_set;  // path_set: a JSON object
};

// Returns the request for a candidate under these terms. `suites`: folders of installed ones; their
// problems are named, others go along with their file and the values of their size. Errors: kUsage.
Result<WorkRequest> MakeWorkRequest(const AskedTerms& terms, const CandidateSource& candidate,
                                    const std::vector<std::string>& suites);

std::string WorkRequestText(const WorkRequest& request);
// Errors: kUsage.
Result<WorkRequest> ParseWorkRequest(const std::string& text);

// Returns the line with which a worker judges the request on `device`. Errors: as WorkerLine().
Result<std::string> LineOfRequest(const WorkRequest& request, const std::string& device,
                                  const std::vector<std::string>& suites, JobFiles& files);

}  // namespace assay
