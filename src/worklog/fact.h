// The facts of a worklog: records of the archive, as lines of the file facts.jsonl beside the
// author's words. Each line proves itself by its hashes (docs/worklog.md). Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "archive/record.h"
#include "base/result.h"

namespace assay {

struct Fact {
  Record record;
  std::string content;  // the bytes that the record is about
};

// Without a line break at its end.
std::string FactLine(const Fact& fact);
// Errors (kUsage): not such a line, or its content or a field was changed.
Result<Fact> ParseFactLine(std::string_view line);
// The lines of a text. Errors (kUsage) name `path`, the line, and the remedy; a git conflict, too.
Result<std::vector<Fact>> ParseFacts(std::string_view text, const std::string& path);

// The number of the first line that a merge left in conflict; 0: none.
size_t ConflictLine(std::string_view text);

}  // namespace assay
