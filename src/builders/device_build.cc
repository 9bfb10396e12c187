#include "builders/device_build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/trace.h"
#include "builders/build_steps.h"
#include "gpu/judge_kernels.h"
#include "machine/machine.h"
#include "toolchain/device_program.h"
#include "toolchain/nvrtc.h"
#include "toolchain/packed_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "/assay/nvrtc_build";
constexpr const char* kNoDriver = "/assay/no_driver.so";  // beside it
constexpr const char* kOutput = "/tmp/image";
constexpr double kOwnKernelsTimeoutS = 60;

struct Compilation {
  std::vector<SandboxFile> files;
  std::string input;  // of `files`
  std::vector<std::string> kernels, flags;
  std::string architecture;
  std::map<std::string, int64_t> macros;
};

// One run of NVRTC; from the cache where it succeeded before.
Result<ToolRun> Compile(Compilation compilation, double timeout_s, StopToken stop, bool* cached) {
  const Span span("NVRTC");
  ASSAY_ASSIGN_OR_RETURN(const Nvrtc nvrtc, FindNvrtc());
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  ASSAY_ASSIGN_OR_RETURN(std::string program,
                         ReadFile(fs::path(support) / "nvrtc_build", 64 << 20));
  SandboxRequest request;
  request.arguments = NvrtcCommand(nvrtc, kProgram, compilation.input, kOutput, compilation.kernels,
                                   compilation.architecture, compilation.flags, compilation.macros);
  std::vector<std::string> parts = request.arguments;
  parts.insert(parts.end(), {"nvrtc", Sha256Hex(program)});
  for (const SandboxFile& file : compilation.files)
    parts.insert(parts.end(), {file.target, file.content});
  ArtifactCache cache((CacheFolder() / "artifacts").string());
  const std::string key = ArtifactCache::Key(parts);
  if (auto artifact = cache.Get(key)) {
    *cached = true;
    ToolRun run;
    run.artifact = std::move(*artifact);
    return run;
  }
  request.environment = {
      {"PATH", "/usr/bin:/bin"}, {"LANG", "C.UTF-8"}, {"TMPDIR", "/tmp"}, {"HOME", "/tmp"}};
  request.files = std::move(compilation.files);
  request.files.push_back({kProgram, std::move(program), true});
  // Without it compiling takes longer, that is all.
  if (auto no_driver = ReadFile(fs::path(support) / "no_driver.so", 1 << 20))
    request.files.push_back({kNoDriver, std::move(*no_driver), true});
  request.binds.push_back({nvrtc.folder, nvrtc.folder});
  request.limits.memory_bytes = uint64_t{4} << 30;
  ASSAY_ASSIGN_OR_RETURN(ToolRun run, RunToolInSandbox(std::move(request), kOutput,
                                                       Deadline::AfterSeconds(timeout_s), stop));
  if (!run.artifact.empty()) [[maybe_unused]]
    auto stored = cache.Put(key, run.artifact);
  return run;
}

std::vector<DeviceTensor> TensorsOf(const wire::Plan& plan) {
  std::vector<DeviceTensor> tensors;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    DeviceTensor tensor;
    tensor.name = argument.name;
    tensor.is_number = argument.kind != wire::Kind::kTensor;
    if (!tensor.is_number) {
      tensor.shape.assign(argument.shape, argument.shape + argument.rank);
      tensor.element_bytes = wire::ElementBytes(argument.dtype);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

uint32_t TensorMapType(const wire::Plan& plan, const PlannedTensorMap& map) {
  using cuda::TensorMapType;
  const auto number = [](TensorMapType type) { return static_cast<uint32_t>(type); };
  if (!map.of_scratch) switch (plan.arguments[map.index].dtype) {
      case wire::DType::kFloat64:
        return number(TensorMapType::kFloat64);
      case wire::DType::kFloat32:
        return number(TensorMapType::kFloat32);
      case wire::DType::kFloat16:
        return number(TensorMapType::kFloat16);
      case wire::DType::kBFloat16:
        return number(TensorMapType::kBFloat16);
      default:
        break;
    }
  // What is moved is bytes; the type matters to reductions and to what fills beyond the edges.
  switch (map.element_bytes) {
    case 1:
      return number(TensorMapType::kUInt8);
    case 2:
      return number(TensorMapType::kUInt16);
    case 4:
      return number(TensorMapType::kUInt32);
    default:
      return number(TensorMapType::kUInt64);
  }
}

wire::LaunchArgument WireArgument(const PlannedArgument& argument) {
  using Kind = PlannedArgument::Kind;
  using wire::LaunchArgumentKind;
  switch (argument.kind) {
    case Kind::kTensor:
      return {LaunchArgumentKind::kTensor, argument.index, 0};
    case Kind::kNumber:
      return {LaunchArgumentKind::kNumber, argument.index, 0};
    case Kind::kScratch:
      return {LaunchArgumentKind::kScratch, argument.index, 0};
    case Kind::kTensorMap:
      return {LaunchArgumentKind::kTensorMap, argument.index, 0};
    case Kind::kInteger:
      break;
  }
  return {LaunchArgumentKind::kInteger, 0, argument.value};
}

// Nothing where the program has more of something than the protocol carries.
std::unique_ptr<wire::Launches> WireLaunches(const DevicePlan& planned, const wire::Plan& plan,
                                             const std::vector<std::string>& kernels) {
  if (planned.launches.size() > wire::kLaunchesMax ||
      planned.scratch_bytes.size() > wire::kScratchesMax ||
      planned.tensor_maps.size() > wire::kTensorMapsMax)
    return nullptr;
  auto launches = std::make_unique<wire::Launches>();
  launches->launch_count = static_cast<uint32_t>(planned.launches.size());
  launches->scratch_count = static_cast<uint32_t>(planned.scratch_bytes.size());
  launches->tensor_map_count = static_cast<uint32_t>(planned.tensor_maps.size());
  std::copy(planned.scratch_bytes.begin(), planned.scratch_bytes.end(), launches->scratch_bytes);
  for (size_t i = 0; i < planned.tensor_maps.size(); ++i) {
    const PlannedTensorMap& map = planned.tensor_maps[i];
    wire::LaunchTensorMap& target = launches->tensor_maps[i];
    if (map.shape.size() > wire::kTensorMapRankMax || map.box.size() != map.shape.size())
      return nullptr;
    target.of_scratch = map.of_scratch ? 1 : 0;
    target.index = map.index;
    target.element_type = TensorMapType(plan, map);
    target.element_bytes = static_cast<uint32_t>(map.element_bytes);
    target.rank = static_cast<uint32_t>(map.shape.size());
    target.swizzle_bytes = static_cast<uint32_t>(map.swizzle_bytes);
    std::copy(map.shape.begin(), map.shape.end(), target.shape);
    std::copy(map.box.begin(), map.box.end(), target.box);
  }
  for (size_t i = 0; i < planned.launches.size(); ++i) {
    const PlannedLaunch& launch = planned.launches[i];
    wire::Launch& target = launches->launches[i];
    if (launch.arguments.size() > wire::kLaunchArgumentsMax) return nullptr;
    const auto kernel = std::find(kernels.begin(), kernels.end(), launch.kernel);
    target.line = static_cast<uint32_t>(launch.line);
    target.kernel = static_cast<uint32_t>(kernel - kernels.begin());
    std::copy(launch.grid.begin(), launch.grid.end(), target.grid);
    std::copy(launch.block.begin(), launch.block.end(), target.block);
    std::copy(launch.cluster.begin(), launch.cluster.end(), target.cluster);
    target.shared_bytes = launch.shared_bytes;
    target.argument_count = static_cast<uint32_t>(launch.arguments.size());
    std::transform(launch.arguments.begin(), launch.arguments.end(), target.arguments,
                   WireArgument);
  }
  return launches;
}

}  // namespace

Result<std::string> JudgeKernelImage(const std::string& architecture, StopToken stop) {
  constexpr std::string_view kFiles[] = {"judge_kernels.cu", "judge_tasks.h"};
  return OwnKernelImage(kFiles, JudgeKernelNames(), architecture, stop);
}

Result<std::string> OwnKernelImage(std::span<const std::string_view> files,
                                   std::span<const char* const> kernels,
                                   const std::string& architecture, StopToken stop) {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  Compilation compilation;
  for (const std::string_view name : files) {
    ASSAY_ASSIGN_OR_RETURN(std::string content,
                           ReadFile(fs::path(support) / "gpu" / name, 1 << 20));
    compilation.files.push_back({fmt::format("/assay/gpu/{}", name), std::move(content), false});
  }
  compilation.input = fmt::format("/assay/gpu/{}", files.front());
  compilation.kernels.assign(kernels.begin(), kernels.end());
  compilation.architecture = architecture;
  compilation.flags = {"-I/assay"};
  bool cached = false;
  ASSAY_ASSIGN_OR_RETURN(ToolRun run,
                         Compile(std::move(compilation), kOwnKernelsTimeoutS, stop, &cached));
  if (run.artifact.empty())
    return EnvironmentError(
        fmt::format("{} does not compile for {}: {}", files.front(), architecture, run.output));
  return std::move(run.artifact);
}

Result<BuiltCandidate> BuildDevice(const CandidateSource& source, const CandidateLimits& limits,
                                   const DeviceTarget& target, StopToken stop) {
  return BuildDevice(source, limits, target.plan, target.gpu.facts().architecture, stop,
                     target.constants);
}

Result<BuiltCandidate> BuildDevice(const CandidateSource& source, const CandidateLimits& limits,
                                   const wire::Plan& plan, const std::string& architecture,
                                   StopToken stop, const Constants& constants) {
  const int64_t begin_ns = MonotonicNs();
  BuiltCandidate built;
  built.source = source;
  const auto fail = [&](std::string message) -> Result<BuiltCandidate> {
    if (!IsPackedFolder(source.content)) built.line = LineOfMessage(message);
    built.failure = std::move(message);
    return std::move(built);
  };
  const auto options = ParseBuildOptions(EntryText(source.content), source.language);
  if (!options) return fail(options.error());
  const auto program = ParseDeviceProgram(EntryText(source.content));
  if (!program) return fail(program.error());
  const auto planned = PlanDeviceProgram(*program, TensorsOf(plan), {});
  if (!planned) return fail(planned.error());
  Compilation compilation;
  compilation.files = SandboxFilesOf(source);
  compilation.input = EntryPath(source);
  for (const PlannedLaunch& launch : planned->launches)
    if (std::find(compilation.kernels.begin(), compilation.kernels.end(), launch.kernel) ==
        compilation.kernels.end())
      compilation.kernels.push_back(launch.kernel);
  const auto launches = WireLaunches(*planned, plan, compilation.kernels);
  if (launches == nullptr) return fail("it has more launches, arguments or buffers than allowed");
  built.launches.assign(reinterpret_cast<const char*>(launches.get()), sizeof *launches);
  compilation.architecture = architecture;
  ASSAY_ASSIGN_OR_RETURN(const std::string header, KernelHeader());
  compilation.flags = options->flags;
  for (std::string& flag : ConstantFlags(source.content, header, constants))
    compilation.flags.push_back(std::move(flag));
  // NVRTC looks for headers beside no file.
  if (IsPackedFolder(source.content)) compilation.flags.push_back("-I" + std::string(kFilesFolder));
  compilation.macros = planned->macros;
  built.compiler = "NVRTC for " + architecture;
  built.flags = fmt::format("{}", fmt::join(options->flags, " "));
  ASSAY_ASSIGN_OR_RETURN(
      ToolRun run,
      Compile(std::move(compilation), BuildTimeoutS(source, limits, true), stop, &built.cached));
  built.log = run.output.substr(0, 16 * 1024);
  if (run.artifact.empty()) {
    if (!run.timed_out) {
      SayWhatFailed(run.output, &built);
      return built;
    }
    built.fault = BuildFault::kTimedOut;
    return fail(fmt::format("building took longer than {:.0f} s (--build-timeout) and was stopped",
                            BuildTimeoutS(source, limits, true)));
  }
  built.artifact = std::move(run.artifact);
  built.build_s = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  return built;
}

}  // namespace assay
