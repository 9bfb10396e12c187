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
// Inputs and outputs of more than this part of the memory are evaluated in float64 by pieces
// (host/python/assay_host/pieces.py).
constexpr uint64_t kFloat64Share = 16;

// On the processor, where memory is taken as it is touched: two values with their expected outputs,
// two live slots for each of the two sides, and the reference's own working memory.
uint64_t BytesOnProcessor(const CallBytes& call) {
  return 8 * (call.inputs + call.weights + call.outputs);
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
  auto settings = nlohmann::json::parse(
      HostSettings(options.problem, options.threads, options.weights_seed, "eager"));
  if (options.memory_bytes > 0)
    settings["float64_whole_bytes"] = options.memory_bytes / kFloat64Share;
  files.settings = settings.dump();
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
                                  double timeout_s) {
  const auto memory = SharedRegion::Create("assay-text", kTextBytesMax);
  if (!memory) return HostFailed(HostTrouble::Kind::kEnvironment, memory.error().message);
  const uint64_t args[] = {argument};
  auto reply = host.Request(kind, args, timeout_s, memory->fd());
  if (!reply) return std::unexpected(reply.error());
  const uint64_t size = std::min<uint64_t>(reply->args[size_arg], kTextBytesMax);
  return TextReply{*reply, {reinterpret_cast<const char*>(memory->data()), size}};
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
  estimate.input_bytes = args[0];
  estimate.parameter_bytes = args[1];
  estimate.output_bytes = args[2];
  const CallBytes call{args[0], args[1], args[2], args[7], args[4]};
  estimate.device_bytes = LeastBytes(call);
  const uint64_t needed_bytes =
      options.device == nullptr ? BytesOnProcessor(call) : estimate.device_bytes;
  const uint64_t memory_bytes = options.memory_bytes;
  if (memory_bytes == 0 || needed_bytes <= memory_bytes) return estimate;
  const auto needed = static_cast<double>(needed_bytes);
  const double share = static_cast<double>(memory_bytes) / needed;
  const std::string set = SetForShare(host, share, options.timeout_s);
  return Fail(ErrorKind::kUnjudged,
              fmt::format("this problem needs about {:.1f} GB to be judged and may take {:.1f} GB: "
                          "{:.2f} GB of inputs, {:.2f} GB of parameters, {:.2f} GB of outputs.{}{}",
                          needed / 1e9, static_cast<double>(memory_bytes) / 1e9,
                          static_cast<double>(args[0]) / 1e9, static_cast<double>(args[1]) / 1e9,
                          static_cast<double>(args[2]) / 1e9,
                          set.empty() ? "" : " It would fit with ", set),
              ErrorCode::kTooLarge);
}

}  // namespace assay
