// Reading many verdicts from files and folders, for commands that look at sets of them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"

namespace assay {

struct VerdictFiles {
  std::vector<Verdict> verdicts;  // outlines (model/verdict_outline.h), in the order of the paths
  std::vector<std::string> skipped;  // "FILE: why", for each file or verdict that could not be read
};

// A path is a file with one verdict or a list of them, a .jsonl file with one a line, or a folder:
// its .json and .jsonl files in alphabetical order, and those of its subfolders, a few levels deep.
// Without `skip_broken` what cannot be read is an error (kUsage) that lists it; so is a path that
// does not exist, in any case.
Result<VerdictFiles> ReadVerdictFiles(const std::vector<std::string>& paths, bool skip_broken);

}  // namespace assay
