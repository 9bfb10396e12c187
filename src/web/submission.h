// A candidate that comes to the queue, from a form or from a program: the same rules.
#pragma once

#include <map>
#include <string>

#include "serve/hall.h"
#include "web/route.h"

namespace assay {

inline constexpr size_t kSourceBytesMax = size_t{1} << 20;

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

}  // namespace assay
