#include "builders/python_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/trace.h"
#include "builders/build_steps.h"
#include "builders/lean_headers.h"
#include "gpu/turns.h"
#include "hosts/device_access.h"
#include "hosts/nursery.h"
#include "toolchain/nvcc.h"
#include "toolchain/packed_folder.h"

namespace assay {
namespace {

constexpr const char* kOutput = "/tmp/extensions.tar";

// The constants among a host's settings: what a build may depend on. Seeds change every time.
std::string SetConstants(const std::string& settings) {
  const auto document = nlohmann::json::parse(settings, nullptr, false);
  return document.is_object() && document.contains("set") ? document["set"].dump() : std::string();
}

// kImports and kConstruction: the device is not there; extensions are compiled as for it, and
// nothing is called.
enum class Stage { kImports, kConstruction, kWhole };

std::string SettingsOf(Stage stage, const std::string& settings) {
  auto document = nlohmann::json::parse(settings, nullptr, false);
  if (stage == Stage::kWhole || !document.is_object()) return settings;
  document["without_device"] = true;
  if (stage == Stage::kImports) document["imports_alone"] = true;
  return document.dump();
}

Nursery NurseryOfBuilds(Stage stage, const PythonRuntime& python) {
  return {stage == Stage::kImports ? "build ahead" : "build", python.executable, python.bytecode};
}

bool IsBlank(const std::string& text) {
  return text.find_first_not_of(" \t\n") == std::string::npos;
}

// Whether the packed folder holds Triton's cache: all that depends on the sizes of a call. A file
// that merely mentions it costs one build.
bool HoldsTritonCache(const std::string& artifact) {
  return artifact.find("triton/") != std::string::npos;
}

// Whether the packed folder holds an extension that was built: the mark of one
// (host/python/assay_host/extensions.py).
bool HoldsExtension(const std::string& artifact) {
  return artifact.find(".assay_built") != std::string::npos;
}

// The builder's exit codes (host/python/assay_host/build.py).
constexpr int kExtensionExit = 40, kNotHereExit = 41;

// The builder writes one message; where the candidate ended the process instead, there is none.
void ExplainFailure(const ToolRun& run, BuiltCandidate* built) {
  if (!IsBlank(run.output)) {
    std::string said = CappedLog(run.output);
    said.erase(said.find_last_not_of(" \t\n") + 1);
    if (run.exit.exited && run.exit.status == kExtensionExit) built->fault = BuildFault::kExtension;
    if (run.exit.exited && run.exit.status == kNotHereExit) built->fault = BuildFault::kNotHere;
    if (!IsPackedFolder(built->source.content)) built->line = LineOfCandidate(said);
    built->failure = std::move(said);
    return;
  }
  built->failure =
      fmt::format("it ended its process with {} {} while ModelNew was imported and constructed",
                  run.exit.exited ? "exit code" : "signal", run.exit.status);
}

// Uncompressed code can be read again (toolchain/cubin.h).
void TellNvcc(SandboxRequest* request) {
  request->environment["NVCC_APPEND_FLAGS"] = "-no-compress";
}

void AllowCompilersForDevice(const DeviceTarget& target, const std::string& toolkit,
                             SandboxRequest* request) {
  // nvcc beside a process that holds PyTorch and a context of CUDA's.
  constexpr uint64_t kMemoryBytes = uint64_t{12} << 30, kScratchBytes = uint64_t{2} << 30;
  constexpr uint32_t kProcesses = 512;
  ShowToolkit(target.gpu, toolkit, request);
  TellNvcc(request);
  request->limits.memory_bytes += kMemoryBytes;
  request->limits.scratch_bytes = kScratchBytes;
  request->limits.processes = std::max(request->limits.processes, kProcesses);
}

// A size of the problem: what the candidate is constructed for, and called with.
struct Size {
  const std::string& init_arguments;
  const std::string& settings;
  const wire::Plan* plan;  // null: it is not called
};

struct Build {
  const CandidateLimits& limits;
  const PythonRuntime& python;
  const DeviceTarget* target;
  std::string toolkit, compiler_version;  // of CUDA; empty: none
  LeanHeaders lean;                       // empty: it loads no extensions
  StopToken stop;
  Stage stage = Stage::kWhole;

  std::string Key(const BuiltCandidate& built, const Size& size) const;
  // Of what its import compiles, whatever the problem.
  std::string ImportsKey(const BuiltCandidate& built, const std::string& settings) const;
  // Builds for one size, on top of what is built already.
  Result<void> AddSize(const Size& size, BuiltCandidate* built) const;
};

// Whether a build without the device says all that one with it would say. One that compiled nothing
// leaves it to the candidate's first call.
bool StandsWithoutDevice(const BuiltCandidate& built) {
  if (!built.failure) return HoldsExtension(built.artifact);
  return built.fault == BuildFault::kTimedOut || built.fault == BuildFault::kExtension;
}

std::string Build::Key(const BuiltCandidate& built, const Size& size) const {
  std::vector<std::string> parts{
      "python",  built.source.content, python.executable,   python.torch_version,
      lean.hash, size.init_arguments,  ProcessorIdentity(), SetConstants(size.settings)};
  if (target != nullptr)
    parts.insert(parts.end(),
                 {target->gpu.Describe(), toolkit, compiler_version, DescribeInputs(*size.plan),
                  built.artifact, stage == Stage::kWhole ? "" : "without the device"});
  return ArtifactCache::Key(parts);
}

std::string Build::ImportsKey(const BuiltCandidate& built, const std::string& settings) const {
  return ArtifactCache::Key({"python imports", built.source.content, python.executable,
                             python.torch_version, lean.hash, ProcessorIdentity(),
                             SetConstants(settings), target->gpu.Describe(), toolkit,
                             compiler_version});
}

Result<void> Build::AddSize(const Size& size, BuiltCandidate* built) const {
  const std::string key =
      stage == Stage::kImports ? ImportsKey(*built, size.settings) : Key(*built, size);
  if (auto artifact = Artifacts().Get(key)) {
    built->artifact = std::move(*artifact);
    built->headers = HeadersOf(built->artifact);
    built->cached = true;
    return {};
  }
  built->cached = false;
  // A build that has ended is not made again.
  if (stage == Stage::kConstruction)
    if (auto imports = Artifacts().Get(ImportsKey(*built, size.settings)))
      built->artifact = std::move(*imports);
  const bool without_device = stage != Stage::kWhole;
  PythonHostFiles files;
  files.settings = SettingsOf(stage, size.settings);
  files.candidate_source = built->source.content;
  files.init_arguments = size.init_arguments;
  files.extensions = built->artifact;
  ASSAY_ASSIGN_OR_RETURN(SandboxRequest request,
                         PythonSandbox(python, PythonRole::kBuild, 1, files));
  request.limits.memory_bytes = limits.memory_bytes;
  if (target != nullptr) {
    request.files.push_back({"/candidate/inputs.json", DescribeInputs(*size.plan), false});
    AllowCompilersForDevice(*target, toolkit, &request);
    if (without_device)
      ShowDriver(target->gpu, &request);
    else
      AllowDevice(target->gpu, &request);
  }
  // To precompile pays after some ten extensions, which are many on a CPU.
  if (!lean.files.empty())
    PreferLeanHeaders(lean, target != nullptr ? PrecompiledHeaders(python, lean) : "", &request);
  std::vector<UniqueFd> kept;
  // Forks have the priority of their nursery.
  if (target != nullptr && target->forks && without_device)
    ForkFromNursery(NurseryOfBuilds(stage, python), &request, &kept);
  const double timeout_s = BuildTimeoutS(built->source, limits, target != nullptr);
  const Gpu* used = target != nullptr && !without_device ? &target->gpu : nullptr;
  ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(used, stop));
  ASSAY_ASSIGN_OR_RETURN(
      ToolRun run, RunToolInSandbox(request, kOutput, Deadline::AfterSeconds(timeout_s), stop));
  built->log = CappedLog(built->log + run.output);
  if (run.artifact.empty()) {
    ExplainToolFailure(run, timeout_s, request.limits.memory_bytes, built);
    if (run.timed_out)
      built->failure = fmt::format(
          "importing it and constructing ModelNew took longer than {:.0f} s (--build-timeout)",
          timeout_s);
    if (!run.timed_out && !run.exit.out_of_memory) ExplainFailure(run, built);
    return {};
  }
  built->artifact = std::move(run.artifact);
  built->headers = HeadersOf(built->artifact);
  // Where its call failed something may be missing: gate 1 finds out, and the next build tries
  // again.
  if (target == nullptr || IsBlank(run.output)) [[maybe_unused]]
    auto stored = Artifacts().Put(key, built->artifact);
  return {};
}

// Reads the headers and finds the compilers of a build.
Result<void> FindTools(Build* build, BuiltCandidate* built) {
  if (built->source.content.contains("cpp_extension")) {
    ASSAY_ASSIGN_OR_RETURN(build->lean, ReadLeanHeaders());
  }
  // PyTorch and Triton do without nvcc; a candidate that needs it is told by them.
  if (build->target == nullptr) return {};
  if (const auto nvcc = FindNvcc()) {
    build->toolkit = built->toolkit = nvcc->toolkit;
    build->compiler_version = nvcc->version;
    built->compiler += fmt::format(", nvcc ({})", nvcc->version);
  }
  return {};
}

}  // namespace

bool CompilesAtImport(const std::string& source) {
  return source.contains("cpp_extension") && !source.contains("triton") &&
         !source.contains("torch.compile");
}

bool CompilesNothing(const std::string& source) {
  for (const char* word : {"triton", "compile", "inductor", "cpp_extension", "import_module",
                           "__import__", "exec(", "eval("})
    if (source.contains(word)) return false;
  constexpr std::string_view kModules[] = {"torch", "math",        "typing",    "functools",
                                           "numpy", "collections", "itertools", "dataclasses",
                                           "enum",  "warnings",    "os",        "__future__"};
  std::istringstream lines(source);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, module;
    words >> first;
    if (first != "import" && first != "from") continue;
    // Of `import a, b` with anything behind the first name nothing is known.
    words >> module;
    module.resize(std::min(module.size(), module.find('.')));
    if (line.contains(';') || (first == "import" && line.contains(',')) ||
        std::ranges::find(kModules, module) == std::end(kModules))
      return false;
  }
  return true;
}

Result<void> StartBuildNursery(const PythonRuntime& python, const Gpu& gpu) {
  ASSAY_ASSIGN_OR_RETURN(SandboxRequest request, PythonSandbox(python, PythonRole::kBuild, 1, {}));
  TellNvcc(&request);
  ShowDriver(gpu, &request);
  StartNurseryAhead(NurseryOfBuilds(Stage::kConstruction, python), request);
  return {};
}

std::string DescribeInputs(const wire::Plan& plan) {
  nlohmann::json inputs = nlohmann::json::array();
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != wire::Role::kInput) continue;
    nlohmann::json input{{"kind", static_cast<uint32_t>(argument.kind)}};
    if (argument.kind == wire::Kind::kTensor) {
      input["dtype"] = static_cast<uint32_t>(argument.dtype);
      input["shape"] = std::vector<int64_t>(argument.shape, argument.shape + argument.rank);
    }
    inputs.push_back(std::move(input));
  }
  return inputs.dump();
}

Result<BuiltCandidate> BuildPython(BuiltCandidate built, const CandidateLimits& limits,
                                   const PythonRuntime& python, const std::string& init_arguments,
                                   const std::string& settings, const DeviceTarget* target,
                                   StopToken stop) {
  built.compiler = "Python " + python.version;
  if (IsBlank(std::string(EntryText(built.source.content)))) {
    built.failure = fmt::format("{} is empty: a candidate in Python defines a class ModelNew",
                                std::filesystem::path(built.source.path).filename().string());
    return built;
  }
  Build build{limits, python, target, "", "", {}, stop};
  ASSAY_RETURN_IF_ERROR(FindTools(&build, &built));
  const Size size{init_arguments, settings, target != nullptr ? &target->plan : nullptr};
  // Such a build may run beside another judge's measurement.
  const bool nothing = CompilesNothing(built.source.content);
  if (target != nullptr && (nothing || CompilesAtImport(built.source.content))) {
    Build ahead = build;
    ahead.stage = Stage::kConstruction;
    BuiltCandidate early = built;
    ASSAY_RETURN_IF_ERROR(ahead.AddSize(size, &early));
    early.without_device = !early.failure;
    if (StandsWithoutDevice(early) || (nothing && !early.failure)) return early;
  }
  ASSAY_RETURN_IF_ERROR(build.AddSize(size, &built));
  if (built.failure || target == nullptr || !target->other_size ||
      !HoldsTritonCache(built.artifact))
    return built;
  const DeviceTarget::Size& other = *target->other_size;
  // What fails at that size alone is found there, by gate 1.
  BuiltCandidate grown = built;
  ASSAY_RETURN_IF_ERROR(build.AddSize({other.init_arguments, other.settings, &other.plan}, &grown));
  return grown.failure ? built : grown;
}

Result<void> CompileImports(const CandidateSource& source, const CandidateLimits& limits,
                            const PythonRuntime& python, const std::string& settings,
                            const Gpu& gpu, StopToken stop) {
  if (source.form != CandidateForm::kPython || !CompilesAtImport(source.content)) return {};
  const Span span("compile imports ahead");
  const auto no_inputs = std::make_unique<wire::Plan>();
  const DeviceTarget target{gpu, *no_inputs, true, {}, true};
  Build build{limits, python, &target, "", "", {}, stop, Stage::kImports};
  BuiltCandidate built;
  built.source = source;
  ASSAY_RETURN_IF_ERROR(FindTools(&build, &built));
  const std::string no_arguments;
  return build.AddSize({no_arguments, settings, no_inputs.get()}, &built);
}

}  // namespace assay
