#include "builders/build_steps.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "toolchain/packed_folder.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLogBytesMax = 16 * 1024;
constexpr uint64_t kHeaderBytesMax = 1 << 20;
constexpr std::string_view kJudgeFolder =
    "; a candidate of several files is judged as their folder: assay judge PROBLEM FOLDER";
constexpr std::string_view kLoadExtension =
    "; an extension of PyTorch is loaded by a candidate in Python: load_inline in a file with "
    "class "
    "ModelNew; a lone file in C++ defines ASSAY_KERNEL";

}  // namespace

std::string CappedLog(std::string text) {
  if (text.size() > kLogBytesMax) text = text.substr(0, kLogBytesMax) + "\n[cut]";
  return text;
}

std::string MemoryText(uint64_t bytes) {
  constexpr std::pair<uint64_t, char> kUnits[] = {
      {uint64_t{1} << 30, 'G'}, {uint64_t{1} << 20, 'M'}, {uint64_t{1} << 10, 'K'}};
  for (const auto& [unit, letter] : kUnits)
    if (bytes >= unit && bytes % unit == 0) return fmt::format("{}{}", bytes / unit, letter);
  return fmt::format("{}", bytes);
}

void SayWhatFailed(const std::string& output, BuiltCandidate* built) {
  const bool is_folder = IsPackedFolder(built->source.content);
  built->failure = FirstDiagnostic(output, is_folder ? EntryPath(built->source) : "");
  // The lines of a folder's source are others than its entry's.
  if (!is_folder) built->line = LineOfMessage(*built->failure);
  const bool is_extension = built->source.content.contains("torch/extension.h");
  if (!is_folder && LacksHeader(output))
    *built->failure += is_extension ? kLoadExtension : kJudgeFolder;
}

std::vector<SandboxFile> SandboxFilesOf(const CandidateSource& source) {
  std::vector<SandboxFile> files;
  for (PlacedFile& file : PlacedFiles(source))
    files.push_back({std::move(file.path), std::move(file.content), false});
  return files;
}

void ExplainToolFailure(const ToolRun& run, double timeout_s, uint64_t memory_bytes,
                        BuiltCandidate* built) {
  if (run.timed_out) {
    built->failure = fmt::format(
        "building took longer than {:.0f} s (--build-timeout) and was stopped", timeout_s);
    built->fault = BuildFault::kTimedOut;
  } else if (run.exit.out_of_memory) {
    built->failure = fmt::format("building took more than {} of memory", MemoryText(memory_bytes));
  } else {
    SayWhatFailed(run.output, built);
  }
}

double BuildTimeoutS(const CandidateSource& source, const CandidateLimits& limits, bool on_device) {
  // PyTorch's headers alone take a compiler most of a minute.
  constexpr double kPlainS = 60, kExtensionS = 300;
  if (limits.build_timeout_s > 0) return limits.build_timeout_s;
  const bool compiles = source.form == CandidateForm::kPython &&
                        (on_device || source.content.contains("cpp_extension"));
  return compiles ? kExtensionS : kPlainS;
}

ArtifactCache Artifacts() { return ArtifactCache((CacheFolder() / "artifacts").string()); }

Result<std::string> KernelHeader() {
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  return ReadFile(fs::path(support) / "include" / "assay" / "kernel.h", kHeaderBytesMax);
}

Result<std::vector<SandboxFile>> KernelHeaderFiles() {
  ASSAY_ASSIGN_OR_RETURN(std::string header, KernelHeader());
  std::vector<SandboxFile> files{{"/assay/include/assay/kernel.h", std::move(header), false}};
  // Where the system has none of its own.
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  if (auto tensors =
          ReadFile(fs::path(support) / "include" / "dlpack" / "dlpack.h", kHeaderBytesMax))
    files.push_back({"/assay/include/dlpack/dlpack.h", std::move(*tensors), false});
  return files;
}

std::map<std::string, std::string> CompilerEnvironment(const std::string& folder) {
  return {{"PATH", (folder.empty() ? "" : folder + ":") + "/usr/local/bin:/usr/bin:/bin"},
          {"LANG", "C.UTF-8"},
          {"TMPDIR", "/tmp"},
          {"HOME", "/tmp"}};
}

}  // namespace assay
