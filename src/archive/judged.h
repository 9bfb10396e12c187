// The records of what became of a candidate. Pure.
#pragma once

#include <string>
#include <vector>

#include "archive/record.h"
#include "base/result.h"
#include "model/verdict.h"

namespace assay {

// A judged source, and the terms.
struct JudgedSource {
  std::string path;     // of the candidate's file
  std::string content;  // its source; empty: not known
  std::string problem;  // its name
  std::string terms;    // of the command, as JSON
};

// A problem's file, or the source of an opponent, if it is new.
NewRecord RecordOfFile(RecordKind kind, const std::string& name, const std::string& problem,
                       std::string content);
// The candidate's source, if it is new, and its verdict.
std::vector<NewRecord> RecordsOfVerdict(const JudgedSource& judged, const Verdict& verdict);
// The same, with the error in the verdict's place.
std::vector<NewRecord> RecordsOfFailure(const JudgedSource& judged, const Error& error);

}  // namespace assay
