// A candidate that comes to the queue, from a form or from a program: the same rules.
#pragma once

#include <map>
#include <string>

#include "serve/hall.h"
#include "web/route.h"

namespace assay {

inline constexpr size_t kSourceBytesMax = size_t{1} << 20;

// Hexadecimal digits, as many as an id has at most.
bool IsVerdictId(const std::string& text);

struct SubmissionFields {
  std::string problem, size, name, source;
  std::map<std::string, std::string> set;
  std::string against;  // a verdict's id; empty: none
  std::string kind;     // "judge" or "compare"; empty: by `against`
  std::string key;
};

struct SubmissionAnswer {
  int status = 202;  // 202 accepted, 200 known by its key, else a refusal
  std::string why;   // of a refusal
  int retry_after_s = 0;
  Job job;
};

// Errors are the server's own.
Result<SubmissionAnswer> SubmitCandidate(Hall& hall, const Account& author,
                                         const SubmissionFields& fields, Instant now);

// Members see all jobs. A job that a member asked for is ended by its author, by mentors of the
// author's class and by those of the server; one that the server asked for, a final or a spot
// check, by these mentors alone.
bool MayCancel(const WebRequest& request, const Job& job);
inline constexpr const char* kWhoMayCancel =
    "its author and its mentors alone can cancel it, and mentors alone a final or a spot check";

}  // namespace assay
