#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/clock.h"
#include "builders/build_steps.h"
#include "builders/python_build.h"
#include "toolchain/nvcc.h"
#include "toolchain/packed_folder.h"

namespace assay {
namespace {

constexpr const char* kOutput = "/tmp/kernel.so";

// A compiler's run over one candidate.
struct Compilation {
  std::string input;  // the source, as the sandbox shows it
  std::vector<std::string> command;
  std::vector<std::string> key;  // beside source, command and headers: what the artifact depends on
  std::string compilers_folder;
  std::string bind;  // a folder that the sandbox would not show; empty: none
  uint64_t memory_bytes = uint64_t{2} << 30;
};

Result<BuiltCandidate> Compile(BuiltCandidate built, Compilation compilation,
                               const CandidateLimits& limits, StopToken stop) {
  SandboxRequest request;
  ASSAY_ASSIGN_OR_RETURN(request.files, KernelHeaderFiles());
  std::vector<std::string> parts = std::move(compilation.key);
  parts.insert(parts.end(),
               {built.source.content, fmt::format("{}", fmt::join(compilation.command, "\n"))});
  for (const SandboxFile& file : request.files) parts.push_back(file.content);
  const std::string key = ArtifactCache::Key(parts);
  if (auto artifact = Artifacts().Get(key)) {
    built.artifact = std::move(*artifact);
    built.cached = true;
    return built;
  }
  request.arguments = std::move(compilation.command);
  request.environment = CompilerEnvironment(compilation.compilers_folder);
  for (SandboxFile& file : SandboxFilesOf(built.source)) request.files.push_back(std::move(file));
  if (!compilation.bind.empty()) request.binds.push_back({compilation.bind, compilation.bind});
  request.may_start_processes = true;
  request.limits.memory_bytes = compilation.memory_bytes;
  request.limits.address_space_bytes = 2 * compilation.memory_bytes;
  ASSAY_ASSIGN_OR_RETURN(
      ToolRun run,
      RunToolInSandbox(request, kOutput,
                       Deadline::AfterSeconds(BuildTimeoutS(built.source, limits, false)), stop));
  built.log = CappedLog(run.output);
  if (run.artifact.empty()) {
    ExplainToolFailure(run, BuildTimeoutS(built.source, limits, false), request.limits.memory_bytes,
                       &built);
    return built;
  }
  built.artifact = std::move(run.artifact);
  [[maybe_unused]] auto stored = Artifacts().Put(key, built.artifact);
  return built;
}

// Adds macros of constants to a build's flags, which a verdict keeps.
Result<void> AddConstants(const CandidateSource& source, const Constants& constants,
                          std::vector<std::string>* flags) {
  ASSAY_ASSIGN_OR_RETURN(const std::string header, KernelHeader());
  for (std::string& flag : ConstantFlags(source.content, header, constants))
    flags->push_back(std::move(flag));
  return {};
}

Result<BuiltCandidate> BuildForProcessor(BuiltCandidate built, const CandidateLimits& limits,
                                         const Constants& constants, StopToken stop) {
  const CandidateSource& source = built.source;
  auto options = ParseBuildOptions(EntryText(source.content), source.language);
  if (!options) {
    built.failure = options.error();
    built.line = LineOfMessage(options.error());
    return built;
  }
  auto found = FindCompiler(options->compiler, source.language);
  // A compiler of the candidate's own choice is its own trouble: it must not end the whole call.
  if (!found && !options->compiler.empty()) {
    built.failure = found.error().message;
    return built;
  }
  ASSAY_ASSIGN_OR_RETURN(const Compiler compiler, std::move(found));
  ASSAY_RETURN_IF_ERROR(AddConstants(source, constants, &options->flags));
  Compilation compilation;
  compilation.input = EntryPath(source);
  compilation.command =
      CompileCommand(compiler, *options, source.language, compilation.input, kOutput);
  compilation.key = {compiler.path, compiler.version, ProcessorIdentity()};
  built.compiler = compiler.version;
  built.flags = fmt::format("{}", fmt::join(options->flags, " "));
  return Compile(std::move(built), std::move(compilation), limits, stop);
}

Result<BuiltCandidate> BuildForDevice(BuiltCandidate built, const CandidateLimits& limits,
                                      const DeviceTarget& target, const Constants& constants,
                                      StopToken stop) {
  // ptxas on large templates takes several times what a compiler for processors does.
  constexpr uint64_t kMemoryBytes = uint64_t{8} << 30;
  auto options = ParseBuildOptions(EntryText(built.source.content), built.source.language);
  if (!options) {
    built.failure = options.error();
    built.line = LineOfMessage(options.error());
    return built;
  }
  const auto library = std::find_if(options->flags.begin(), options->flags.end(), IsCudaLibrary);
  if (library != options->flags.end() && !target.libraries_allowed) {
    built.failure = fmt::format(
        "flag '{}' is not allowed here: the problem asks for kernels of the candidate's own",
        *library);
    return built;
  }
  ASSAY_RETURN_IF_ERROR(AddConstants(built.source, constants, &options->flags));
  ASSAY_ASSIGN_OR_RETURN(const Nvcc nvcc, FindNvcc());
  // nvcc has one compile the host's part.
  ASSAY_ASSIGN_OR_RETURN(const Compiler host_compiler, FindCompiler("g++", "cpp"));
  const bool shown = nvcc.toolkit.starts_with("/usr/") || nvcc.toolkit == "/usr";
  Compilation compilation;
  compilation.input = EntryPath(built.source);
  compilation.command = NvccCommand(nvcc, options->flags, target.gpu.facts().architecture,
                                    compilation.input, kOutput);
  compilation.key = {nvcc.version, host_compiler.version};
  compilation.compilers_folder = std::filesystem::path(nvcc.path).parent_path().string();
  if (!shown) compilation.bind = nvcc.toolkit;
  compilation.memory_bytes = kMemoryBytes;
  built.compiler = fmt::format("nvcc ({}) for {}", nvcc.version, target.gpu.facts().architecture);
  built.flags = fmt::format("{}", fmt::join(options->flags, " "));
  if (library != options->flags.end()) built.toolkit = nvcc.toolkit;
  return Compile(std::move(built), std::move(compilation), limits, stop);
}

}  // namespace

std::string ArtifactHash(const BuiltCandidate& built) {
  if (built.failure || built.artifact.empty() || built.source.form == CandidateForm::kPython)
    return {};
  std::vector<std::string> parts{built.source.form == CandidateForm::kDevice ? "device" : "native",
                                 built.artifact, built.launches};
  for (const auto& other : built.at_other_sizes)
    if (other) parts.push_back(ArtifactHash(*other));
  return ArtifactCache::Key(parts);
}

bool BuildsAlone(const CandidateSource& source) {
  if (source.form != CandidateForm::kNative || source.IsCuda()) return false;
  const auto header = KernelHeader();
  return !header || MacrosNamed(source.content, *header).empty();
}

Result<BuiltCandidate> BuildCandidate(const CandidateSource& source, const CandidateLimits& limits,
                                      const PythonRuntime& python,
                                      const std::string& init_arguments,
                                      const std::string& settings, StopToken stop,
                                      const DeviceTarget* target, const Constants& constants) {
  ASSAY_CHECK(source.form != CandidateForm::kDevice);  // BuildDevice's
  ASSAY_CHECK(!source.IsCuda() || target != nullptr);
  const int64_t begin_ns = MonotonicNs();
  BuiltCandidate built;
  built.source = source;
  auto result =
      source.form == CandidateForm::kPython
          ? BuildPython(std::move(built), limits, python, init_arguments, settings, target, stop)
      : source.IsCuda() ? BuildForDevice(std::move(built), limits, *target, constants, stop)
                        : BuildForProcessor(std::move(built), limits, constants, stop);
  if (result) result->build_s = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  return result;
}

}  // namespace assay
