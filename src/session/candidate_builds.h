// Builds a batch's candidates side by side. Those that need only their source compile from the
// start, beside other work; the rest once the problem is known.
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
  // Begins those that need only their source. Builds each content once. `sources` and `limits` must
  // outlive this object.
  CandidateBuilds(std::vector<const CandidateSource*> sources, const CandidateLimits& limits,
                  StopToken stop);
  // The setup for building candidates in Python on a CPU.
  struct PythonSetup {
    const PythonRuntime& python;
    const std::string& settings;
    std::string init_arguments;    // the construction record
    uint64_t parameter_bytes = 0;  // of the module that is constructed
  };
  // Builds all now, where only the source and `setup` are needed: values of a large problem take
  // long. Returns true if all failed; TakeFailed() then gives them. Errors as BuildCandidate's.
  Result<bool> BuildFirst(const PythonSetup& setup);
  std::vector<BuiltCandidate> TakeFailed() { return InOrder(std::move(first_built_)); }

  // Builds the others and waits for all. `setup` serves all of them. Results are in the order of
  // the sources. `progress` gets the number of finished builds. Errors as BuildLate's.
  Result<std::vector<BuiltCandidate>> Finish(const LateBuildSetup& setup,
                                             const std::function<void(size_t done)>& progress);

  size_t size() const { return sources_.size(); }

 private:
  using Builds = SideBySide<CandidateSource, Result<BuiltCandidate>>;
  // Returns the first source with the same content as this one; usually this one itself.
  size_t SameAs(size_t index) const;
  // Returns the sources to build, each content once: those that build alone, or the others.
  std::vector<const CandidateSource*> Distinct(bool alone) const;
  // Returns a result for each source; `distinct` has one for each content.
  std::vector<BuiltCandidate> InOrder(std::vector<BuiltCandidate> distinct) const;

  std::vector<const CandidateSource*> sources_;
  const CandidateLimits& limits_;
  const StopToken stop_;
  std::unique_ptr<Builds> early_;
  std::vector<BuiltCandidate> first_built_;  // by BuildFirst(), one for each content
};

}  // namespace assay
