// The problems that a server offers: those of the installed suites, and those of a suite in its own
// folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "problem/suite.h"

namespace assay {

struct OfferedProblem {
  SuiteProblem facts;
  std::string path;  // of its file
  std::string hash;  // SHA-256 of the file
  // The file's text is sent to runners, which have not got it.
  bool is_own = false;
};

class Catalogue {
 public:
  // `own_folder`: a folder that may have a suite.toml; of a name in several suites the first
  // counts, own ones first. Errors (kUsage): a suite cannot be read.
  static Result<Catalogue> Load(const std::vector<std::string>& suite_folders,
                                const std::string& own_folder);

  const std::vector<OfferedProblem>& all() const { return problems_; }
  // Errors (kUsage): there is none of that name; names the nearest.
  Result<const OfferedProblem*> Find(const std::string& name) const;
  // The text of its file. Errors (kUsage): it is gone, or was changed since.
  Result<std::string> Text(const OfferedProblem& problem) const;
  // Errors (kUsage): the size is not known, or a setting is none.
  Result<void> Check(const OfferedProblem& problem, const std::string& size,
                     const std::map<std::string, std::string>& set) const;

 private:
  std::vector<OfferedProblem> problems_;
};

}  // namespace assay
