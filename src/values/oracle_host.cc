#include "values/oracle_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/defences.h"
#include "hosts/blame.h"
#include "hosts/device_access.h"
#include "machine/machine.h"

namespace assay {

using wire::FrameKind;

namespace {

constexpr uint64_t kTextBytesMax = 4 << 20;

// On the processor, where memory is taken as it is touched: two values with their expected outputs,
// two live slots for each of the two sides, and the reference's own working memory.
uint64_t BytesOnProcessor(const CallBytes& call) {
  return 8 * (call.inputs + call.weights + call.outputs);
}

uint64_t NeededBytes(const OracleOptions& options, const CallBytes& call) {
  return options.device == nullptr ? BytesOnProcessor(call) : LeastBytes(call);
}

}  // namespace

Error OracleError(const HostTrouble& trouble) {
  using Kind = HostTrouble::Kind;
  if (trouble.kind == Kind::kInterrupted) return {ErrorKind::kInterrupted, "interrupted"};
  if (trouble.kind == Kind::kFailed && trouble.failure < wire::Failure::kCandidateLoad)
    return {trouble.failure == wire::Failure::kProblemNotHere ? ErrorKind::kEnvironment
                                                              : ErrorKind::kUsage,
            trouble.message, CodeOf(trouble)};
  std::string message = "the reference host failed: " + trouble.message;
  if (!trouble.output.empty()) message += "\n" + trouble.output;
  return {ErrorKind::kEnvironment, message, CodeOf(trouble)};
}

// Constant parameters get values of their own only where they may also change.
WeightsKind WeightsTreatment(const ProblemRequest& problem) {
  if (!Stands(Defence::kRandomWeights)) return WeightsKind::kConstructed;
  if (problem.weights == WeightsKind::kVaried && !Stands(Defence::kVaryingWeights))
    return WeightsKind::kConstant;
  return problem.weights;
}

std::string HostSettings(const ProblemRequest& problem, int threads, uint64_t weights_seed,
                         std::string_view baseline) {
  nlohmann::json settings;
  settings["set"] = problem.set;
  settings["threads"] = threads;
  settings["weights_seed"] = weights_seed;
  settings["baseline"] = baseline;
  settings["weights"] = WeightsKindName(WeightsTreatment(problem));
  if (problem.device != "cpu") {
    settings["device"] = problem.device;
    settings["precision"] = problem.precision;
  }
  settings["figures"] = nlohmann::json::object();
  if (!problem.flops.empty()) settings["figures"]["flops"] = problem.flops;
  if (!problem.bytes.empty()) settings["figures"]["bytes"] = problem.bytes;
  return settings.dump();
}

Result<std::unique_ptr<Host>> StartOracleHost(const OracleOptions& options) {
  PythonHostFiles files;
  files.problem_source = options.problem.source;
  files.settings = HostSettings(options.problem, options.threads, options.weights_seed, "eager");
  HostOptions host_options;
  ASSAY_ASSIGN_OR_RETURN(host_options.sandbox, PythonSandbox(options.python, PythonRole::kReference,
                                                             options.threads, files));
  host_options.sandbox.limits.memory_bytes = TotalMemoryBytes();
  host_options.sandbox.limits.address_space_bytes = uint64_t{1} << 42;
  host_options.sandbox.limits.cpu_seconds = kTrustedCpuSeconds;
  if (options.device != nullptr)
    AllowDevice(options.device->gpu(), &host_options.sandbox, DeviceQueues::kOne);
  if (options.forks) host_options.nursery = NurseryFor("oracle", 0, options.python);
  auto host = Host::Start(std::move(host_options));
  if (!host) return std::unexpected(OracleError(host.error()));
  host->set_stop(options.stop);
  return std::make_unique<Host>(std::move(*host));
}

HostResult<TextReply> RequestText(Host& host, FrameKind kind, uint64_t argument, size_t size_arg,
                                  double timeout_s, uint64_t second) {
  const auto memory = SharedRegion::Create("assay-text", kTextBytesMax);
  if (!memory) return HostFailed(HostTrouble::Kind::kEnvironment, memory.error().message);
  const uint64_t args[] = {argument, second};
  auto reply = host.Request(kind, args, timeout_s, memory->fd());
  if (!reply) return std::unexpected(reply.error());
  const uint64_t size = std::min<uint64_t>(reply->args[size_arg], kTextBytesMax);
  return TextReply{*reply, {reinterpret_cast<const char*>(memory->data()), size}};
}

std::string ConstructionRecord(Host& host, const OracleOptions& options) {
  const auto memory = SharedRegion::Create("assay-init", kInitArgumentsMax);
  const uint64_t record_alone[] = {2, 0};
  if (!memory) return {};
  const auto reply = host.Request(FrameKind::kLoad, record_alone, options.timeout_s, memory->fd());
  if (!reply || reply->args[3] > kInitArgumentsMax) return {};
  return {reinterpret_cast<const char*>(memory->data()), reply->args[3]};
}

std::string SetForShare(Host& host, double share, double timeout_s) {
  const auto whole = RequestText(host, FrameKind::kEstimate, 0, 6, timeout_s);
  if (!whole || whole->frame.args[3] == 0) return {};
  const auto limit = static_cast<uint64_t>(share * static_cast<double>(whole->frame.args[5]));
  const auto reply = RequestText(host, FrameKind::kEstimate, limit, 6, timeout_s);
  return reply ? host.Message() : std::string();
}

// A problem that does not fit is refused before it is tried.
Result<ProblemEstimate> EstimateProblem(Host& host, const OracleOptions& options) {
  auto reply = RequestText(host, FrameKind::kEstimate, 0, 6, options.timeout_s);
  if (!reply) return std::unexpected(OracleError(reply.error()));
  ProblemEstimate estimate;
  ASSAY_ASSIGN_OR_RETURN(estimate.account, ParseWorkAccount(reply->text));
  const auto& args = reply->frame.args;
  if (args[3] == 0) return estimate;
  estimate.call = {args[0], args[1], args[2], args[7], args[4]};
  if (options.memory_bytes > 0 && NeededBytes(options, estimate.call) > options.memory_bytes)
    return std::unexpected(TooLarge(host, options, estimate.call));
  return estimate;
}

Error TooLarge(Host& host, const OracleOptions& options, const CallBytes& call) {
  const auto needed = static_cast<double>(NeededBytes(options, call));
  const auto memory = static_cast<double>(options.memory_bytes);
  const std::string set = SetForShare(host, memory / needed, options.timeout_s);
  return {ErrorKind::kUnjudged,
          fmt::format(
              "this problem needs about {:.1f} GB to be judged and may take {:.1f} GB: "
              "{:.2f} GB of inputs, {:.2f} GB of parameters, {:.2f} GB of outputs, {:.2f} GB of "
              "intermediate tensors.{}{}",
              needed / 1e9, memory / 1e9, static_cast<double>(call.inputs) / 1e9,
              static_cast<double>(call.weights) / 1e9, static_cast<double>(call.outputs) / 1e9,
              static_cast<double>(call.working - std::min(call.working, call.outputs)) / 1e9,
              set.empty() ? "" : " It would fit with ", set),
          ErrorCode::kTooLarge};
}

}  // namespace assay
