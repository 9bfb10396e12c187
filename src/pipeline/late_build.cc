#include "pipeline/late_build.h"

#include "base/check.h"
#include "pipeline/device_build.h"

namespace assay {

Result<BuiltCandidate> BuildLate(const CandidateSource& source, const LateBuildSetup& setup) {
  ASSAY_CHECK(!source.IsCuda() || setup.gpu != nullptr);
  std::optional<DeviceTarget> target;
  if (setup.gpu != nullptr) {
    target.emplace(*setup.gpu, setup.oracle.plan(), setup.request.problem.allow_libraries);
    if (const OtherSize* other = setup.other_size)
      target->other_size.emplace(other->oracle.plan(), other->oracle.init_arguments(),
                                 other->settings);
  }
  CandidateLimits limits = setup.request.limits;
  if (source.form == CandidateForm::kDevice)
    return BuildDevice(source, limits, *target, setup.interrupt);
  // A python candidate is constructed once as it is built: its weights come on top, as in its
  // hosts.
  limits.memory_bytes += TensorBytes(setup.oracle.plan(), wire::Role::kParameter);
  return BuildCandidate(source, limits, setup.python, setup.oracle.init_arguments(), setup.settings,
                        setup.interrupt, target ? &*target : nullptr);
}

}  // namespace assay
