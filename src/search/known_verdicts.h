// Verdicts that the archive has from earlier searches, by what was built: a candidate that builds
// to the same is not measured again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "archive/store.h"
#include "base/result.h"
#include "model/verdict.h"

namespace assay {

// True if a verdict on the same artifact would be no news: `earlier` was given on the same problem,
// machine and toolchain as `own`, is decided by the candidate alone, and against the threshold `p`,
// not against the best of a race. The terms must be the same, too.
bool StandsFor(const Verdict& earlier, const Verdict& own, double p);

class KnownVerdicts {
 public:
  // `terms`: those of the search's first looks, as TermsText writes them. The archive must outlive
  // this object.
  KnownVerdicts(Store& archive, std::string problem, std::string terms)
      : archive_(archive), problem_(std::move(problem)), terms_(std::move(terms)) {}

  // Reads the newest verdicts on these terms that stand for one like `own`, a verdict of this
  // process. Returns their artifacts; of a second call none. Errors: the archive cannot be read.
  Result<std::vector<std::string>> Learn(const Verdict& own);

  struct Known {
    Verdict verdict;
    std::string content;  // its hash in the archive
  };
  // Errors: there is none for this artifact.
  Result<Known> Find(const std::string& artifact) const;

 private:
  Store& archive_;
  const std::string problem_, terms_;
  bool learned_ = false;
  std::map<std::string, std::string> contents_;  // artifact -> hash of its newest verdict
};

}  // namespace assay
