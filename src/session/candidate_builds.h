// The builds of a batch, side by side. What needs nothing but its source compiles from the start,
// beside whatever else goes on; the rest once the problem is known.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "machine/side_by_side.h"
#include "session/late_build.h"

namespace assay {

class CandidateBuilds {
 public:
  // Begins those that build alone. `sources`, of which each file is built once, and `limits` must
  // stay.
  CandidateBuilds(std::vector<const CandidateSource*> sources, const CandidateLimits& limits,
                  StopToken stop);
  // Builds the others and waits for all; `setup` is of all of them. Results are in the order of the
  // sources. `progress`: how many are done.
  Result<std::vector<BuiltCandidate>> Finish(const LateBuildSetup& setup,
                                             const std::function<void(size_t done)>& progress);

  // True once those that build alone are built.
  bool BuiltAlone() const { return early_->Done(); }

  size_t size() const { return sources_.size(); }

 private:
  using Builds = SideBySide<CandidateSource, Result<BuiltCandidate>>;
  // The first source that is the same file as this one: this one, often.
  size_t SameAs(size_t index) const;
  // Sources that are built, each file once, and alone or not.
  std::vector<const CandidateSource*> Distinct(bool alone) const;

  std::vector<const CandidateSource*> sources_;
  std::unique_ptr<Builds> early_;
};

}  // namespace assay
