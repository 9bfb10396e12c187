// Which problems `assay audit` was asked for: files, names, suites, KernelBench checkouts.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/problem.h"

namespace assay {

// A problem, or why there is none.
struct AskedAudit {
  ProblemRequest problem;  // of one that cannot be read: name and path alone
  std::string error;
};

// Expands folders: of one with a suite.toml the problems it lists, of a checkout of KernelBench the
// files of its levels, of any other its .py files that define a Model. `set` (NAME=VALUE) goes to a
// single problem as it is; of several to those that have such a constant. Errors (kUsage): nothing
// there, a bad NAME=VALUE, or a NAME that none of several has.
Result<std::vector<AskedAudit>> AskedProblems(const std::vector<std::string>& names,
                                              const std::string& size,
                                              const std::vector<std::string>& set,
                                              const std::vector<std::string>& suite_folders);

// "2_x.py" before "10_x.py".
bool NaturallyBefore(const std::string& a, const std::string& b);

// Returns true if a module assigns to this name at its top level, as far as its text tells.
bool AssignsConstant(const std::string& source, const std::string& name);

}  // namespace assay
