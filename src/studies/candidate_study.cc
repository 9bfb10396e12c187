#include "studies/candidate_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <limits>

#include "base/median.h"
#include "builders/device_build.h"
#include "gpu/turns.h"
#include "machine/machine.h"
#include "machine/side_by_side.h"
#include "model/dtype.h"
#include "sandbox/sandbox.h"
#include "sides/candidate_hosts.h"

namespace assay {

struct CandidateStudy::Runner {
  BuiltCandidate built;
  std::unique_ptr<CandidateHosts> hosts;  // they refer to what was built
  std::optional<LiveHost> host;
  std::vector<uint32_t> order = {0};
  std::vector<double> times_ns = {};
};

namespace {

constexpr double kCallTimeoutS = 60;
constexpr uint32_t kValues = 4;   // that take turns
constexpr double kBlockNs = 5e6;  // about, of calls
constexpr double kCallsMax = 64;  // in a block
constexpr int kWarmUpBlocks = 3, kVoidMax = 5;

std::string FileNameOf(const CandidateSource& candidate) {
  return std::filesystem::path(candidate.path).filename().string();
}

double ToDouble(DType dtype, const std::byte* at) {
  const auto take = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::kFloat64:
      return take(double());
    case DType::kFloat32:
      return static_cast<double>(take(float()));
    case DType::kFloat16:
      return static_cast<double>(take(_Float16()));
    default: {
      const uint32_t bits = uint32_t{take(uint16_t())} << 16;
      float value = 0;
      std::memcpy(&value, &bits, sizeof value);
      return static_cast<double>(value);
    }
  }
}

// Runs one block on fresh values; returns the time of a call.
HostResult<double> RunOnce(const Oracle& oracle, LiveSlots& live, LiveHost& host,
                           std::span<const uint32_t> order) {
  std::vector<uint32_t> masters;
  const uint32_t slots = live.plan().slot_count;
  for (uint32_t slot = 0; slot < slots; ++slot) masters.push_back(slot % kValues);
  for (int tries = 0;; ++tries) {
    live.FillInputs(oracle, masters);
    live.Poison(host.outputs);
    auto block = live.RunBlock(host.host, host.outputs, order, kCallTimeoutS);
    if (block) return static_cast<double>(block->time_ns) / static_cast<double>(order.size());
    if (block.error().kind != HostTrouble::Kind::kVoid || tries == kVoidMax)
      return std::unexpected(block.error());
  }
}

std::vector<uint32_t> OrderOf(uint32_t slots, double call_ns) {
  const auto calls = static_cast<size_t>(std::clamp(kBlockNs / call_ns, 1.0, kCallsMax));
  std::vector<uint32_t> order;
  for (size_t i = 0; i < calls; ++i) order.push_back(static_cast<uint32_t>(i) % slots);
  return order;
}

Error TroubleOf(const CandidateSource& candidate, const HostTrouble& trouble) {
  const Error error = OracleError(trouble);
  return {error.kind, fmt::format("{} does not run: {}", FileNameOf(candidate), error.message)};
}

}  // namespace

double MedianDifference(const std::vector<double>& longer, const std::vector<double>& shorter) {
  std::vector<double> differences;
  for (size_t i = 0; i < std::min(longer.size(), shorter.size()); ++i)
    differences.push_back(longer[i] - shorter[i]);
  return Median(differences);
}

double RelativeError(DType dtype, const std::byte* y, const double* truth, uint64_t count) {
  double difference = 0, norm = 0;
  const uint32_t bytes = wire::ElementBytes(dtype);
  for (uint64_t i = 0; i < count; ++i) {
    const double off = ToDouble(dtype, y + i * bytes) - truth[i];
    difference += off * off;
    norm += truth[i] * truth[i];
  }
  if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

Result<CandidateStudy> CandidateStudy::Open(StudyRequest request) {
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  CandidateStudy study;
  study.request_ = std::move(request);
  const StudyRequest& asked = study.request_;
  const bool on_device = asked.problem.device == "cuda";
  if (on_device) {
    ASSAY_ASSIGN_OR_RETURN(study.device_, JudgeDevice::Open(asked.stop));
  }
  ASSAY_ASSIGN_OR_RETURN(study.python_, FindPython(asked.python));
  OracleOptions options;
  options.problem = asked.problem;
  options.python = study.python_;
  options.threads = asked.threads > 0 ? asked.threads : DefaultThreads(on_device);
  options.weights_seed = 1;
  options.memory_bytes =
      study.device_ ? study.device_->BytesForValues() : AvailableMemoryBytes() / 2;
  options.slots_most = kValues;
  options.device = study.device_.get();
  options.stop = asked.stop;
  study.request_.threads = options.threads;
  study.settings_ = HostSettings(asked.problem, options.threads, options.weights_seed, "eager");
  ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(study.gpu(), asked.stop));
  ASSAY_ASSIGN_OR_RETURN(Oracle oracle, Oracle::Open(options));
  study.oracle_ = std::make_unique<Oracle>(std::move(oracle));
  ASSAY_ASSIGN_OR_RETURN(LiveSlots live, LiveSlots::Create(*study.oracle_, study.device_.get()));
  study.live_ = std::make_unique<LiveSlots>(std::move(live));
  return study;
}

Result<BuiltCandidate> CandidateStudy::Build(const CandidateSource& candidate) const {
  std::optional<DeviceTarget> target;
  if (device_)
    target.emplace(
        DeviceTarget{device_->gpu(), oracle_->plan(), true, {}, false, oracle_->constants()});
  Result<BuiltCandidate> built =
      candidate.form == CandidateForm::kDevice && target
          ? BuildDevice(candidate, request_.limits, *target, request_.stop)
          : BuildCandidate(candidate, request_.limits, python_, oracle_->init_arguments(),
                           settings_, request_.stop, target ? &*target : nullptr,
                           oracle_->constants());
  if (built && built->failure)
    return UsageError(fmt::format("{} does not build: {}", FileNameOf(candidate), *built->failure));
  return built;
}

Result<std::vector<BuiltCandidate>> CandidateStudy::BuildAll(
    const std::vector<CandidateSource>& candidates) const {
  std::vector<const CandidateSource*> inputs;
  for (const CandidateSource& candidate : candidates) {
    // Python candidates have one extension, that of the first.
    if (inputs.empty() || candidate.form != CandidateForm::kPython) inputs.push_back(&candidate);
  }
  SideBySide<CandidateSource, Result<BuiltCandidate>> builds(
      inputs, [this](const CandidateSource& candidate) { return Build(candidate); });
  std::vector<BuiltCandidate> built;
  for (size_t i = 0; i < inputs.size(); ++i) {
    ASSAY_ASSIGN_OR_RETURN(BuiltCandidate one, builds.Take(i));
    built.push_back(std::move(one));
  }
  for (size_t i = built.size(); i < candidates.size(); ++i) {
    built.push_back(built.front());
    built.back().source = candidates[i];
  }
  return built;
}

Result<void> CandidateStudy::Start(BuiltCandidate built, Runner* runner) const {
  runner->built = std::move(built);
  const CandidateSource& candidate = runner->built.source;
  runner->hosts = std::make_unique<CandidateHosts>(
      CandidateHostSetup{runner->built, request_.limits, python_, *oracle_, *live_, settings_,
                         gpu(), request_.threads, request_.stop});
  auto host = runner->hosts->Take(0, 1);
  if (!host) return std::unexpected(TroubleOf(candidate, host.error()));
  runner->host.emplace(std::move(*host));
  const CorePlan cores = PlanCores(UsableCpus(), request_.threads, 0);
  if (auto bound = runner->host->host.Bind(cores.hosts); !bound)
    return std::unexpected(TroubleOf(candidate, bound.error()));
  return {};
}

Result<std::vector<std::vector<double>>> CandidateStudy::TimeCalls(
    const std::vector<CandidateSource>& candidates, int rounds,
    const std::function<void(double)>& progress) {
  ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(gpu(), request_.stop));
  for (uint32_t value = 0; value < std::min(kValues, oracle_->slots_max()); ++value)
    if (auto filled = oracle_->Fill(value, value + 1, wire::DrawKind::kOrdinary, false); !filled)
      return std::unexpected(OracleError(filled.error()));
  live_->SetSlotCount(std::min({live_->capacity(), kValues, oracle_->slots_max()}));
  std::deque<Runner> runners;
  ASSAY_ASSIGN_OR_RETURN(std::vector<BuiltCandidate> built, BuildAll(candidates));
  for (BuiltCandidate& one : built)
    ASSAY_RETURN_IF_ERROR(Start(std::move(one), &runners.emplace_back()));
  // Until the turn ends, no other judge computes.
  if (const auto turns = GpuTurns::Of(gpu())) ASSAY_RETURN_IF_ERROR(turns->Measure(request_.stop));
  for (int round = -kWarmUpBlocks; round < rounds; ++round) {
    progress(static_cast<double>(round + kWarmUpBlocks) / (rounds + kWarmUpBlocks));
    for (size_t i = 0; i < runners.size(); ++i) {
      if (request_.stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
      const auto call_ns = RunOnce(*oracle_, *live_, *runners[i].host, runners[i].order);
      if (!call_ns) return std::unexpected(TroubleOf(candidates[i], call_ns.error()));
      if (round < 0)
        runners[i].order = OrderOf(live_->plan().slot_count, *call_ns);
      else
        runners[i].times_ns.push_back(*call_ns);
    }
  }
  std::vector<std::vector<double>> times_ns;
  for (Runner& runner : runners) times_ns.push_back(std::move(runner.times_ns));
  return times_ns;
}

Result<std::vector<OutputError>> CandidateStudy::Errors(const CandidateSource& candidate,
                                                        uint64_t seed) {
  if (!description().float64_supported)
    return UsageError("the reference does not run in float64: there is nothing to compare with");
  ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(gpu(), request_.stop));
  if (auto filled = oracle_->Fill(0, seed, wire::DrawKind::kOrdinary, true); !filled)
    return std::unexpected(OracleError(filled.error()));
  live_->SetSlotCount(1);
  Runner runner;
  ASSAY_ASSIGN_OR_RETURN(BuiltCandidate built, Build(candidate));
  ASSAY_RETURN_IF_ERROR(Start(std::move(built), &runner));
  if (auto ran = RunOnce(*oracle_, *live_, *runner.host, runner.order); !ran)
    return std::unexpected(TroubleOf(candidate, ran.error()));
  const std::byte* written = live_->Written(runner.host->outputs, 0);
  const std::byte* native = oracle_->outputs(0);
  const std::byte* truth = oracle_->oracle(0);
  std::vector<OutputError> errors;
  for (const wire::ArgumentSpec& output : description().arguments) {
    if (output.role != wire::Role::kOutput || !IsFloatingPoint(output.dtype)) continue;
    const wire::ArgumentSpec& placed =
        oracle_->plan().arguments[&output - description().arguments.data()];
    const uint64_t count = placed.size_bytes / wire::ElementBytes(placed.dtype);
    const auto* expected = reinterpret_cast<const double*>(truth + placed.oracle_offset);
    errors.push_back({std::string(placed.name, strnlen(placed.name, wire::kNameBytes)),
                      RelativeError(placed.dtype, native + placed.offset, expected, count),
                      RelativeError(placed.dtype, written + placed.offset, expected, count)});
  }
  return errors;
}

}  // namespace assay
