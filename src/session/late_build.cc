#include "session/late_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "base/check.h"
#include "base/trace.h"
#include "builders/device_build.h"
#include "hosts/blame.h"

namespace assay {
namespace {

// The device form, once for each size that it is called at.
Result<BuiltCandidate> BuildDeviceSizes(const CandidateSource& source, const DeviceTarget& target,
                                        const LateBuildSetup& setup) {
  const CandidateLimits& limits = setup.terms.limits;
  if (!target.other_size) return BuildDevice(source, limits, target, setup.stop);
  const DeviceTarget other{target.gpu, target.other_size->plan, target.libraries_allowed, {}};
  auto beside = std::async(std::launch::async,
                           [&] { return BuildDevice(source, limits, other, setup.stop); });
  auto timed = BuildDevice(source, limits, target, setup.stop);
  auto ragged = beside.get();
  ASSAY_ASSIGN_OR_RETURN(BuiltCandidate built, std::move(timed));
  if (built.failure) return built;
  ASSAY_ASSIGN_OR_RETURN(BuiltCandidate at_other, std::move(ragged));
  built.build_s = std::max(built.build_s, at_other.build_s);
  built.cached = built.cached && at_other.cached;
  if (at_other.failure) {
    built.fault = at_other.fault;
    built.line = at_other.line;
    built.log = at_other.log;
    built.failure = fmt::format(
        "it builds at the size that was asked for, but at {}: {} (--one-size leaves "
        "other sizes out)",
        setup.other_size->text, *at_other.failure);
    return built;
  }
  built.at_other_size = std::make_shared<const BuiltCandidate>(std::move(at_other));
  return built;
}

}  // namespace

Result<BuiltCandidate> BuildLate(const CandidateSource& source, const LateBuildSetup& setup) {
  const Span span("build");
  ASSAY_CHECK(!source.IsCuda() || setup.gpu != nullptr);
  std::optional<DeviceTarget> target;
  if (setup.gpu != nullptr) {
    target.emplace(*setup.gpu, setup.oracle.plan(), setup.terms.problem.allow_libraries);
    target->forks = setup.terms.forks_hosts;
    if (const OtherSize* other = setup.other_size)
      target->other_size.emplace(other->oracle.plan(), other->oracle.init_arguments(),
                                 other->settings);
  }
  CandidateLimits limits = setup.terms.limits;
  if (source.form == CandidateForm::kDevice) return BuildDeviceSizes(source, *target, setup);
  // A python candidate is constructed once as it is built: its weights come on top, as in its
  // hosts.
  limits.memory_bytes += TensorBytes(setup.oracle.plan(), wire::Role::kParameter);
  return BuildCandidate(source, limits, setup.python, setup.oracle.init_arguments(), setup.settings,
                        setup.stop, target ? &*target : nullptr);
}

bool MayHaveLackedMemory(const BuiltCandidate& built) {
  if (built.source.form != CandidateForm::kPython) return false;
  return BuilderMayLackMemory(built.log) || (built.failure && BuilderMayLackMemory(*built.failure));
}

}  // namespace assay
