#include "pipeline/first_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/candidate.h"
#include "pipeline/machine.h"
#include "pipeline/oracle.h"
#include "pipeline/reference_pool.h"
#include "sandbox/sandbox.h"

namespace assay {
namespace {

constexpr double kCallTimeoutS = 30;
constexpr uint32_t kValues = 4;  // that take turns: no call has its values in a cache for long

HostResult<std::vector<double>> CallOneByOne(const Oracle& oracle, LiveSlots& live, LiveHost& host,
                                             bool trusted, int calls) {
  const CorePlan cores = PlanCores(UsableCpus(), DefaultThreads(), 0);
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

}  // namespace

Result<FirstCalls> TimeFirstCalls(const FirstCallsRequest& request) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  OracleOptions options;
  options.problem = request.problem;
  ASSAY_ASSIGN_OR_RETURN(options.python, FindPython(request.python));
  options.threads = DefaultThreads();
  options.weights_seed = 1;
  options.memory_bytes = AvailableMemoryBytes() / 2;
  options.interrupt = request.interrupt;
  const CandidateLimits limits;
  ASSAY_ASSIGN_OR_RETURN(
      const BuiltCandidate built,
      BuildCandidate(request.candidate, limits, options.python, "", "", request.interrupt));
  if (built.failure) return UsageError(*built.failure);
  ASSAY_ASSIGN_OR_RETURN(Oracle oracle, Oracle::Open(options));
  ASSAY_ASSIGN_OR_RETURN(LiveSlots live, LiveSlots::Create(oracle));
  for (uint32_t value = 0; value < kValues; ++value)
    if (auto filled = oracle.Fill(value, value + 1, wire::DrawKind::kOrdinary, false); !filled)
      return std::unexpected(OracleError(filled.error()));
  live.SetSlotCount(1);
  FirstCalls found;
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
  pool_options.interrupt = request.interrupt;
  ReferencePool pool(std::move(pool_options), oracle, live);
  auto reference = pool.Get(0, 1);
  if (!reference) return std::unexpected(OracleError(reference.error()));
  ASSAY_RETURN_IF_ERROR(time(**reference, true, &found.reference_ns));
  const std::string settings =
      HostSettings(request.problem, options.threads, options.weights_seed, "eager");
  CandidateHosts hosts({built, limits, options.python, oracle, live, settings, nullptr,
                        options.threads, request.interrupt});
  auto candidate = hosts.Take(0, 1);
  if (!candidate) return std::unexpected(OracleError(candidate.error()));
  ASSAY_RETURN_IF_ERROR(time(*candidate, false, &found.candidate_ns));
  return found;
}

}  // namespace assay
