#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "builders/device_build.h"
#include "builders/kernel_records.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "ladder/ladder.h"
#include "ladder/recorded_shapes.h"
#include "machine/machine.h"
#include "sandbox/sandbox.h"
#include "toolchain/cubin.h"
#include "toolchain/hot_loop.h"
#include "values/oracle.h"
#include "values/slot_layout.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultArchitecture = "sm_90a";

// Python's folders of packages that no interpreter names: those of pip on Debian and Ubuntu.
std::vector<std::string> PackageFolders(const std::string& python) {
  std::vector<std::string> folders;
  if (const auto runtime = FindPython(python)) folders = runtime->folders;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator("/usr/local/lib", code))
    if (entry.path().filename().string().starts_with("python"))
      folders.push_back((entry.path() / "dist-packages").string());
  return folders;
}

Result<Nvdisasm> RequireNvdisasm(const std::string& python) {
  if (auto found = FindNvdisasm()) return *found;
  if (auto found = FindNvdisasmInPackages(PackageFolders(python))) return *found;
  return EnvironmentError(
      "there is no nvdisasm, which lists machine code, in $CUDA_HOME/bin, $PATH, "
      "/usr/local/cuda/bin or Python's packages: install CUDA's (NVIDIA's Debian package "
      "cuda-nvdisasm-13-0 or of another version, or pip install nvidia-cuda-nvdisasm)");
}

// The ladder for a GPU in the file's folder that has it as a rung.
Result<Ladder> LadderOf(const std::string& file) {
  const fs::path path(file);
  const auto ladders = FindLadders(path.has_parent_path() ? path.parent_path().string() : ".");
  if (ladders)
    for (const Ladder& ladder : *ladders)
      if (ladder.device == "cuda" &&
          std::any_of(ladder.rungs.begin(), ladder.rungs.end(),
                      [&](const Rung& rung) { return rung.file == path.filename(); }))
        return ladder;
  return UsageError(fmt::format(
      "{} is no rung of a ladder in its folder: name its problem, as --problem softmax", file));
}

// By the problem itself: PyTorch makes its inputs.
Result<ProblemDescription> Describe(ProblemRequest problem, const std::string& python) {
  OracleOptions options;
  options.problem = std::move(problem);
  ASSAY_ASSIGN_OR_RETURN(options.python, FindPython(python));
  options.memory_bytes = AvailableMemoryBytes() / 4 * 3;
  ASSAY_ASSIGN_OR_RETURN(const Oracle oracle, Oracle::Open(std::move(options)));
  return oracle.description();
}

// The arguments of a call, on which launches and constants depend.
Result<ProblemDescription> DescriptionFor(const SassOptions& options) {
  if (!options.problem.problem.empty()) {
    ASSAY_ASSIGN_OR_RETURN(ProblemRequest problem, options.problem.Resolve());
    return Describe(std::move(problem), options.python);
  }
  ASSAY_ASSIGN_OR_RETURN(const Ladder ladder, LadderOf(options.file));
  ASSAY_ASSIGN_OR_RETURN(const LadderSize size,
                         WithSettings(ladder.sizes.front(), options.problem.set));
  if (auto recorded = RecordedDescription(ladder, size)) return *recorded;
  const fs::path file = fs::path(ladder.folder) / ladder.problem;
  ProblemOptions problem;
  problem.problem = fs::exists(file) ? file.string() : ladder.problem;
  for (const auto& [name, value] : size) problem.set.push_back(name + "=" + value);
  ASSAY_ASSIGN_OR_RETURN(ProblemRequest request, problem.Resolve());
  return Describe(std::move(request), options.python);
}

std::string Architecture(const SassOptions& options) {
  if (!options.architecture.empty()) return options.architecture;
  const auto gpu = Gpu::Open();
  return gpu ? gpu->facts().architecture : kDefaultArchitecture;
}

std::string HeadOf(const HotLoop& loop, bool whole) {
  const std::string name = KernelDisplayName(loop.kernel);
  std::string head =
      whole ? fmt::format("{}: {} instructions", name, loop.kernel_instructions)
      : loop.chosen_by.empty()
          ? fmt::format("{}: {} instructions, and no loop that computes or moves anything", name,
                        loop.kernel_instructions)
          : fmt::format("{}: {} of {} instructions are its hot loop, the one with the most '{}'",
                        name, loop.lines.size(), loop.kernel_instructions, loop.chosen_by);
  head += "\n   ";
  for (const auto& [mark, count] : loop.marks) head += fmt::format(" {} {},", mark, count);
  head.back() = '\n';
  return head + "\n";
}

std::string Listed(const HotLoop& loop, bool whole) {
  std::string text = HeadOf(loop, whole);
  for (const ListedInstruction& line : loop.lines)
    text += fmt::format("  {:>5}  {:<10}  {:>4} {}{}{}\n", line.address, MarkOf(line.name),
                        line.guard, line.name, line.operands.empty() ? "" : " ", line.operands);
  return text;
}

Result<int> Show(const SassOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(const CandidateSource source, ReadCandidate(options.file));
  if (source.form != CandidateForm::kDevice)
    return UsageError(fmt::format(
        "{} is not in the device form, a .cu file with '//! launch' lines", options.file));
  const StopToken stop(InstallInterruptHandler());
  ASSAY_ASSIGN_OR_RETURN(const ProblemDescription description, DescriptionFor(options));
  ASSAY_ASSIGN_OR_RETURN(const Nvdisasm nvdisasm, RequireNvdisasm(options.python));
  const auto plan = std::make_unique<Result<wire::Plan>>(LayOutSlots(description));
  if (!*plan) return std::unexpected(plan->error());
  ASSAY_ASSIGN_OR_RETURN(const BuiltCandidate built,
                         BuildDevice(source, {}, **plan, Architecture(options), stop));
  if (built.failure) {
    Notice(fmt::format("{} does not build: {}", options.file, *built.failure));
    return kExitBuildFailed;
  }
  ASSAY_ASSIGN_OR_RETURN(const std::string listing,
                         ListMachineCode(built.artifact, nvdisasm, stop));
  std::string text;
  for (const HotLoop& loop : options.whole ? WholeKernels(listing) : FindHotLoops(listing))
    text += (text.empty() ? "" : "\n") + Listed(loop, options.whole);
  std::fputs(text.c_str(), stdout);
  return kExitGood;
}

}  // namespace

int RunSass(const SassOptions& options) {
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  if (auto sandbox = RequireSandbox(); !sandbox) return ReportError(sandbox.error());
  const auto code = Show(options);
  return code ? *code : ReportError(code.error());
}

}  // namespace assay
