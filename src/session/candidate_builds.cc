#include "session/candidate_builds.h"

#include <algorithm>

namespace assay {
namespace {

// An empty file's message names it.
bool BuildsTheSame(const CandidateSource& a, const CandidateSource& b) {
  const bool empty = a.content.find_first_not_of(" \t\n") == std::string::npos;
  return a.hash == b.hash && a.form == b.form && a.language == b.language &&
         (!empty || a.path == b.path);
}

}  // namespace

CandidateBuilds::CandidateBuilds(std::vector<const CandidateSource*> sources,
                                 const CandidateLimits& limits, StopToken stop)
    : sources_(std::move(sources)), limits_(limits), stop_(stop) {
  early_ = std::make_unique<Builds>(Distinct(true), [&limits, stop](const CandidateSource& source) {
    return BuildCandidate(source, limits, PythonRuntime{}, "", "", stop);
  });
}

size_t CandidateBuilds::SameAs(size_t index) const {
  const CandidateSource& source = *sources_[index];
  for (size_t i = 0; i < index; ++i)
    if (BuildsTheSame(*sources_[i], source)) return i;
  return index;
}

std::vector<const CandidateSource*> CandidateBuilds::Distinct(bool alone) const {
  std::vector<const CandidateSource*> found;
  for (size_t i = 0; i < sources_.size(); ++i)
    if (BuildsAlone(*sources_[i]) == alone && SameAs(i) == i) found.push_back(sources_[i]);
  return found;
}

std::vector<BuiltCandidate> CandidateBuilds::InOrder(std::vector<BuiltCandidate> distinct) const {
  std::vector<BuiltCandidate> built;
  size_t next = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const size_t same = SameAs(i);
    if (same == i) {
      built.push_back(std::move(distinct[next++]));
      continue;
    }
    built.push_back(built[same]);
    built.back().source = *sources_[i];
    built.back().cached = true;
    built.back().build_s = 0;
  }
  return built;
}

Result<bool> CandidateBuilds::BuildFirst(const PythonSetup& setup) {
  const std::vector<const CandidateSource*> late_sources = Distinct(false);
  if (!std::ranges::all_of(late_sources, [](const CandidateSource* source) {
        return source->form == CandidateForm::kPython;
      }))
    return false;
  CandidateLimits limits = limits_;
  limits.memory_bytes += setup.parameter_bytes;
  Builds late(late_sources, [&](const CandidateSource& source) {
    return BuildCandidate(source, limits, setup.python, setup.init_arguments, setup.settings,
                          stop_);
  });
  size_t next_early = 0, next_late = 0;
  bool all_failed = true;
  for (size_t i = 0; i < sources_.size(); ++i) {
    if (SameAs(i) != i) continue;
    ASSAY_ASSIGN_OR_RETURN(BuiltCandidate candidate, BuildsAlone(*sources_[i])
                                                         ? early_->Take(next_early++)
                                                         : late.Take(next_late++));
    all_failed = all_failed && candidate.failure;
    first_built_.push_back(std::move(candidate));
  }
  return all_failed;
}

Result<std::vector<BuiltCandidate>> CandidateBuilds::Finish(
    const LateBuildSetup& setup, const std::function<void(size_t done)>& progress) {
  if (!first_built_.empty()) return InOrder(std::move(first_built_));
  const std::vector<const CandidateSource*> late_sources = Distinct(false);
  const bool any_python = std::any_of(
      late_sources.begin(), late_sources.end(),
      [](const CandidateSource* source) { return source->form == CandidateForm::kPython; });
  if (any_python && setup.oracle.init_arguments().empty())
    return UsageError(
        "what the problem's get_init_inputs() returns cannot be handed to a candidate in Python: "
        "it cannot be pickled, is of a class of the problem's own, or takes more than 64 MiB");
  Builds late(late_sources,
              [&](const CandidateSource& source) { return BuildLate(source, setup); });
  size_t next_early = 0, next_late = 0;
  std::vector<BuiltCandidate> distinct;
  for (size_t i = 0; i < sources_.size(); ++i) {
    progress(i);
    if (SameAs(i) != i) continue;
    ASSAY_ASSIGN_OR_RETURN(BuiltCandidate candidate, BuildsAlone(*sources_[i])
                                                         ? early_->Take(next_early++)
                                                         : late.Take(next_late++));
    distinct.push_back(std::move(candidate));
  }
  std::vector<BuiltCandidate> built = InOrder(std::move(distinct));
  for (size_t i = 0; i < built.size(); ++i)
    if (setup.gpu != nullptr && late_sources.size() > 1 && MayHaveLackedMemory(built[i])) {
      ASSAY_ASSIGN_OR_RETURN(built[i], BuildLate(*sources_[i], setup));
    }
  return built;
}

}  // namespace assay
