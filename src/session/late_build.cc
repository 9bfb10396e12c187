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

// Takes over what failed at another size.
void FailAt(const OtherSize& size, const BuiltCandidate& at_other, BuiltCandidate* built) {
  built->fault = at_other.fault;
  built->line = at_other.line;
  built->log = at_other.log;
  built->failure = fmt::format(
      "it builds at the size that was asked for, but at {}: {} (--one-size leaves other sizes out)",
      size.text, *at_other.failure);
}

// Of all sizes, on a device. A native candidate takes no other arguments than it was written for.
const OtherSize* SizeOfDevice(const CandidateSource& source, const LateBuildSetup& setup) {
  if (setup.other_sizes == nullptr || setup.other_sizes->empty()) return nullptr;
  const OtherSize* size = setup.other_sizes->front().get();
  const bool fits = source.form == CandidateForm::kPython ||
                    !HasOtherArguments(setup.oracle.plan(), size->oracle.plan());
  return fits ? size : nullptr;
}

// The device form, once for each size that it is called at.
Result<BuiltCandidate> BuildDeviceSizes(const CandidateSource& source, const DeviceTarget& target,
                                        const LateBuildSetup& setup) {
  const CandidateLimits& limits = setup.terms.limits;
  const OtherSize* size = SizeOfDevice(source, setup);
  if (size == nullptr) return BuildDevice(source, limits, target, setup.stop);
  const DeviceTarget other{target.gpu, size->oracle.plan(),     target.libraries_allowed, {},
                           false,      size->oracle.constants()};
  auto beside = std::async(std::launch::async,
                           [&] { return BuildDevice(source, limits, other, setup.stop); });
  auto timed = BuildDevice(source, limits, target, setup.stop);
  auto ragged = beside.get();
  ASSAY_ASSIGN_OR_RETURN(BuiltCandidate built, std::move(timed));
  if (built.failure) return built;
  ASSAY_ASSIGN_OR_RETURN(BuiltCandidate at_other, std::move(ragged));
  built.build_s = std::max(built.build_s, at_other.build_s);
  built.cached = built.cached && at_other.cached;
  if (at_other.failure)
    FailAt(*size, at_other, &built);
  else
    built.at_other_sizes = {std::make_shared<const BuiltCandidate>(std::move(at_other))};
  return built;
}

// A native candidate that names constants, once for each of their values.
Result<BuiltCandidate> BuildWithConstants(const CandidateSource& source,
                                          const CandidateLimits& limits,
                                          const LateBuildSetup& setup, const DeviceTarget* target) {
  ASSAY_ASSIGN_OR_RETURN(const std::string header, KernelHeader());
  const auto flags_at = [&](const Oracle& oracle) {
    return ConstantFlags(source.content, header, oracle.constants());
  };
  const auto build = [&](const Oracle& oracle) {
    return BuildCandidate(source, limits, setup.python, "", "", setup.stop, target,
                          oracle.constants());
  };
  ASSAY_ASSIGN_OR_RETURN(BuiltCandidate built, build(setup.oracle));
  if (built.failure || setup.other_sizes == nullptr) return built;
  for (const auto& size : *setup.other_sizes) {
    built.at_other_sizes.push_back(nullptr);
    if (flags_at(size->oracle) == flags_at(setup.oracle) ||
        HasOtherArguments(setup.oracle.plan(), size->oracle.plan()))
      continue;
    ASSAY_ASSIGN_OR_RETURN(BuiltCandidate at_other, build(size->oracle));
    built.build_s += at_other.build_s;
    built.cached = built.cached && at_other.cached;
    if (at_other.failure) {
      FailAt(*size, at_other, &built);
      return built;
    }
    built.at_other_sizes.back() = std::make_shared<const BuiltCandidate>(std::move(at_other));
  }
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
    target->constants = setup.oracle.constants();
    if (const OtherSize* other = SizeOfDevice(source, setup))
      target->other_size.emplace(other->oracle.plan(), other->oracle.init_arguments(),
                                 other->settings);
  }
  CandidateLimits limits = setup.terms.limits;
  if (source.form == CandidateForm::kDevice) return BuildDeviceSizes(source, *target, setup);
  if (source.form == CandidateForm::kNative)
    return BuildWithConstants(source, limits, setup, target ? &*target : nullptr);
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
