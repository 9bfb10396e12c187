#include "studies/first_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "builders/device_build.h"
#include "machine/machine.h"
#include "sandbox/sandbox.h"
#include "sides/candidate_hosts.h"
#include "sides/reference_pool.h"
#include "values/judge_device.h"
#include "values/oracle.h"

namespace assay {
namespace {

constexpr double kCallTimeoutS = 30;
constexpr uint32_t kValues = 4;  // that take turns: no call has its values in a cache for long

HostResult<std::vector<double>> CallOneByOne(const Oracle& oracle, LiveSlots& live, LiveHost& host,
                                             bool trusted, int calls) {
  const CorePlan cores = PlanCores(UsableCpus(), DefaultThreads(live.on_device()), 0);
  if (auto bound = host.host.Bind(cores.hosts); !bound) return std::unexpected(bound.error());
  std::vector<double> times_ns;
  while (static_cast<int>(times_ns.size()) < calls) {
    const uint32_t masters[] = {static_cast<uint32_t>(times_ns.size()) % kValues};
    live.FillInputs(oracle, masters);
    live.Poison(host.outputs);
    const uint32_t order[] = {0};
    auto block = live.RunBlock(host.host, host.outputs, order, kCallTimeoutS);
    if (!block && block.error().kind == HostTrouble::Kind::kVoid) continue;
    if (!block) return std::unexpected(block.error());
    // Copying results into slots is the reference's alone, as in gate 2.
    const int64_t settle_ns =
        trusted ? std::clamp<int64_t>(block->settle_ns, 0, block->time_ns) : 0;
    times_ns.push_back(static_cast<double>(block->time_ns - settle_ns));
  }
  return times_ns;
}

// `device`: null on the CPU.
Result<BuiltCandidate> Build(const FirstCallsRequest& request, const PythonRuntime& python,
                             const Oracle& oracle, const JudgeDevice* device) {
  const CandidateLimits limits;
  std::optional<DeviceTarget> target;
  if (device != nullptr) target.emplace(device->gpu(), oracle.plan());
  if (request.candidate.form == CandidateForm::kDevice && target)
    return BuildDevice(request.candidate, limits, *target, request.stop);
  return BuildCandidate(request.candidate, limits, python, "", "", request.stop,
                        target ? &*target : nullptr, oracle.constants());
}

}  // namespace

Result<FirstCalls> TimeFirstCalls(const FirstCallsRequest& request) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  const bool on_device = request.problem.device == "cuda";
  std::unique_ptr<JudgeDevice> device;
  if (on_device) {
    ASSAY_ASSIGN_OR_RETURN(device, JudgeDevice::Open(request.stop));
  }
  const Gpu* const gpu = device ? &device->gpu() : nullptr;
  OracleOptions options;
  options.problem = request.problem;
  ASSAY_ASSIGN_OR_RETURN(options.python, FindPython(request.python));
  options.threads = DefaultThreads(on_device);
  options.weights_seed = 1;
  options.memory_bytes = device ? device->BytesForValues() : AvailableMemoryBytes() / 2;
  options.device = device.get();
  options.stop = request.stop;
  ASSAY_ASSIGN_OR_RETURN(Oracle oracle, Oracle::Open(options));
  ASSAY_ASSIGN_OR_RETURN(const BuiltCandidate built,
                         Build(request, options.python, oracle, device.get()));
  if (built.failure) return UsageError(*built.failure);
  ASSAY_ASSIGN_OR_RETURN(LiveSlots live, LiveSlots::Create(oracle, device.get()));
  if (oracle.slots_max() < kValues)
    return Fail(ErrorKind::kUnjudged,
                fmt::format("{} sets of this problem's values do not fit into the memory that is "
                            "free: lower its sizes with --set",
                            kValues),
                ErrorCode::kTooLarge);
  for (uint32_t value = 0; value < kValues; ++value)
    if (auto filled = oracle.Fill(value, value + 1, wire::DrawKind::kOrdinary, false); !filled)
      return std::unexpected(OracleError(filled.error()));
  live.SetSlotCount(1);
  FirstCalls found;
  found.candidate = std::filesystem::path(request.candidate.path).filename().string();
  const auto time = [&](LiveHost& host, bool trusted,
                        std::vector<double>* times_ns) -> Result<void> {
    auto times = CallOneByOne(oracle, live, host, trusted, request.calls);
    if (!times) return std::unexpected(OracleError(times.error()));
    *times_ns = std::move(*times);
    return {};
  };
  ReferencePool::Options pool_options;
  pool_options.problem = request.problem;
  pool_options.python = options.python;
  pool_options.threads = options.threads;
  pool_options.weights_seed = options.weights_seed;
  pool_options.gpu = gpu;
  pool_options.stop = request.stop;
  ReferencePool pool(std::move(pool_options));
  pool.Meet(oracle, live);
  auto reference = pool.Get(0, 1, false);
  if (!reference) return std::unexpected(OracleError(reference.error()));
  ASSAY_RETURN_IF_ERROR(time(**reference, true, &found.reference_ns));
  const std::string settings =
      HostSettings(request.problem, options.threads, options.weights_seed, "eager");
  const CandidateLimits limits;
  CandidateHosts hosts(
      {built, limits, options.python, oracle, live, settings, gpu, options.threads, request.stop});
  auto candidate = hosts.Take(0, 1);
  if (!candidate) return std::unexpected(OracleError(candidate.error()));
  ASSAY_RETURN_IF_ERROR(time(*candidate, false, &found.candidate_ns));
  return found;
}

}  // namespace assay
