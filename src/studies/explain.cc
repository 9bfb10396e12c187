#include "studies/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/hash.h"
#include "builders/build_candidate.h"
#include "correctness/gate1_run.h"
#include "machine/machine.h"
#include "machine/seeds.h"
#include "sandbox/sandbox.h"
#include "studies/explain_program.h"
#include "toolchain/build.h"
#include "toolchain/packed_folder.h"
#include "values/draw_kinds.h"
#include "values/oracle.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using wire::ArgumentSpec;
using wire::Role;

// The draw that failed; for a crash, which leaves no record, the first ordinary one.
struct FailingDraw {
  wire::DrawKind kind = wire::DrawKind::kOrdinary;
  uint64_t seed = 0;
  std::map<std::string, std::string> set;  // constants of another size, or none
};

Result<FailingDraw> FindFailingDraw(const Verdict& verdict) {
  if (verdict.correctness) {
    for (const DrawRecord& draw : verdict.correctness->draws) {
      if (draw.result != "failed") continue;
      const auto kind = DrawKindFromName(draw.kind);
      if (!kind)
        return UsageError(fmt::format("the verdict names an unknown kind of draw: {}", draw.kind));
      return FailingDraw{*kind, draw.seed, draw.set};
    }
  }
  switch (verdict.outcome) {
    case Outcome::kCrashed:
    case Outcome::kTimedOut:
    case Outcome::kOutOfMemory:
    case Outcome::kWrong:
      return FailingDraw{
          wire::DrawKind::kOrdinary, DeriveSeed(verdict.seed, SeedStream::kDraws), {}};
    default:
      return UsageError(fmt::format("verdict {} is '{}': there is no failing call to explain",
                                    verdict.id, OutcomeName(verdict.outcome)));
  }
}

Result<void> WriteTensors(const Oracle& oracle, const fs::path& folder) {
  const wire::Plan& plan = oracle.plan();
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.kind != wire::Kind::kTensor) continue;
    const std::byte* base = argument.role == Role::kInput       ? oracle.inputs(0)
                            : argument.role == Role::kParameter ? oracle.weights()
                                                                : oracle.outputs(0);
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(
        folder / FileName(argument), {reinterpret_cast<const char*>(base + argument.offset),
                                      static_cast<size_t>(argument.size_bytes)}));
  }
  return {};
}

// As its sandbox has it.
Result<void> WriteCandidate(const CandidateSource& candidate, const fs::path& folder) {
  for (const PlacedFile& file : PlacedFiles(candidate))
    ASSAY_RETURN_IF_ERROR(
        WriteFileAtomically(folder / file.path.substr(kCandidateFolder.size()), file.content));
  return {};
}

// Returns the command that compiles and runs it.
Result<std::string> WriteProgram(const ExplainRequest& request, const Oracle& oracle,
                                 const fs::path& folder) {
  const bool is_c = request.verdict.candidate.language == Language::kC;
  ASSAY_ASSIGN_OR_RETURN(const std::string header, KernelHeader());
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / "assay" / "kernel.h", header));
  CandidateSource candidate;
  candidate.content = request.candidate_source;
  candidate.language = is_c ? "c" : "cpp";
  ASSAY_RETURN_IF_ERROR(WriteCandidate(candidate, folder));
  const std::string file = EntryPath(candidate).substr(kCandidateFolder.size());
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / "main.cpp", ProgramInCpp(oracle)));
  const std::string flags =
      "-g -O1 -fsanitize=address,undefined -march=native -I. " + request.verdict.candidate.flags;
  return is_c ? fmt::format(
                    "cd {} && gcc -std=gnu11 {} -c {} -o kernel.o && g++ -std=c++20 {} main.cpp "
                    "kernel.o -o call && ./call",
                    folder.string(), flags, file, flags)
              : fmt::format("cd {} && g++ -std=c++20 {} main.cpp {} -o call && ./call",
                            folder.string(), flags, file);
}

// Constructs and calls the candidate as its host does, by the same modules.
Result<void> WriteScript(const ExplainRequest& request, const Oracle& oracle,
                         const std::string& settings, const fs::path& folder) {
  CandidateSource candidate;
  candidate.content = request.candidate_source;
  candidate.form = CandidateForm::kPython;
  ASSAY_RETURN_IF_ERROR(WriteCandidate(candidate, folder));
  if (const auto packed = UnpackFolder(candidate.content))
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / "entry", packed->entry));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / "init.pickle", oracle.init_arguments()));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / "run.py", ScriptInPython(oracle, settings)));
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  std::error_code code;
  for (const auto& entry :
       fs::directory_iterator(fs::path(support) / "python" / "assay_host", code)) {
    if (entry.path().extension() != ".py") continue;
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(entry.path(), 1 << 20));
    ASSAY_RETURN_IF_ERROR(
        WriteFileAtomically(folder / "assay_host" / entry.path().filename(), text));
  }
  if (code) return EnvironmentError("Assay's python hosts cannot be read: " + code.message());
  return {};
}

}  // namespace

Result<ExplainResult> ExplainVerdict(const ExplainRequest& request) {
  const Verdict& verdict = request.verdict;
  if (verdict.candidate.language == Language::kCuda || !verdict.machine.gpu.empty())
    return UsageError(
        "assay explain writes programs for the processor: this candidate was judged on a GPU");
  ASSAY_ASSIGN_OR_RETURN(const FailingDraw draw, FindFailingDraw(verdict));
  if (Sha256Hex(request.problem.source) != verdict.problem.hash)
    return UsageError(
        fmt::format("{} changed since the verdict: judge again first", verdict.problem.path));
  if (Sha256Hex(request.candidate_source) != verdict.candidate.hash)
    return UsageError(
        fmt::format("{} changed since the verdict: judge again first", verdict.candidate.path));
  const fs::path folder(request.folder);
  if (fs::exists(folder))
    return UsageError(fmt::format("{} exists: name another folder with -o", folder.string()));
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  OracleOptions options;
  options.problem = request.problem;
  if (!draw.set.empty()) options.problem.set = draw.set;
  if (verdict.problem.weights) options.problem.weights = *verdict.problem.weights;
  ASSAY_ASSIGN_OR_RETURN(options.python, FindPython(request.python));
  options.threads = std::max(1, verdict.machine.threads);
  options.weights_seed = DeriveSeed(verdict.seed, SeedStream::kWeights);
  options.memory_bytes = AvailableMemoryBytes() / 4 * 3;
  options.stop = request.stop;
  const std::string python = options.python.executable;
  const std::string settings =
      HostSettings(options.problem, options.threads, options.weights_seed, "eager");
  ASSAY_ASSIGN_OR_RETURN(Oracle oracle, Oracle::Open(std::move(options)));
  if (auto shown = oracle.ShowWeights(draw.seed); !shown)
    return std::unexpected(OracleError(shown.error()));
  if (auto filled = oracle.Fill(0, draw.seed, draw.kind, false); !filled)
    return UsageError(
        fmt::format("the failing inputs cannot be made again: {}", filled.error().message));
  ASSAY_RETURN_IF_ERROR(WriteTensors(oracle, folder));
  ExplainResult result;
  result.folder = folder.string();
  result.draw = DrawKindName(draw.kind);
  if (oracle.description().own_check)
    result.note =
        "the problem's own check judged: what the program compares with is one right answer of "
        "several";
  if (verdict.candidate.form == CandidateForm::kPython) {
    ASSAY_RETURN_IF_ERROR(WriteScript(request, oracle, settings, folder));
    result.command = fmt::format("cd {} && {} run.py", folder.string(), python);
    return result;
  }
  ASSAY_ASSIGN_OR_RETURN(result.command, WriteProgram(request, oracle, folder));
  return result;
}

}  // namespace assay
