// Writes a verdict's failing call as a standalone program, in C++ or, for a Python candidate, in
// Python: the candidate's source, the inputs, the expected outputs, and a main() that makes the one
// call and prints the differences. For a debugger, a sanitizer, or a friend.
#pragma once

#include <string>

#include "base/result.h"
#include "hosts/host.h"
#include "model/problem.h"
#include "model/verdict.h"

namespace assay {

struct ExplainRequest {
  Verdict verdict;
  ProblemRequest problem;        // as resolved today; its hash must be the verdict's
  std::string candidate_source;  // likewise
  std::string folder;            // to create
  std::string python;
  StopToken stop;
};

struct ExplainResult {
  std::string folder;
  std::string draw;     // "large-offset"
  std::string command;  // that compiles and runs the program
  std::string note;     // on how to read what it prints; may be empty
};

// Makes the draw again from the verdict's seed and writes the program. Errors (kUsage): a verdict
// with no failing call that a program could show, sources that changed since, a folder that exists;
// (kEnvironment): the machine.
Result<ExplainResult> ExplainVerdict(const ExplainRequest& request);

}  // namespace assay
