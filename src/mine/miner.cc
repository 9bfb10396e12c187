#include "mine/miner.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "gpu/turns.h"
#include "hosts/device_access.h"
#include "machine/machine.h"
#include "toolchain/nvcc.h"

namespace assay {
namespace {

constexpr const char* kOutput = "/tmp/mined.json";
constexpr uint64_t kScratchBytes = uint64_t{2} << 30;
constexpr uint32_t kProcesses = 512;  // compilers, and threads that compile for tuning

std::string SettingsFor(const MinerTerms& terms, const ProblemRequest& problem,
                        const std::string& mode) {
  nlohmann::json settings = {{"set", problem.set}, {"mode", mode}};
  if (terms.gpu != nullptr) {
    settings["device"] = "cuda";
    settings["precision"] = problem.precision;
  }
  return settings.dump();
}

// Why there is no answer. The process writes one whatever it finds, so something ended it.
std::string WithoutAnswer(const ToolRun& run, double timeout_s) {
  if (run.timed_out)
    return fmt::format(
        "torch.compile took longer than {:.0f} s: give it more by --again --compile-timeout "
        "SECONDS",
        timeout_s);
  if (run.exit.out_of_memory) return "torch.compile ran out of this machine's memory";
  std::string said = run.output.substr(0, run.output.find_last_not_of(" \n\t") + 1);
  said = said.substr(said.rfind('\n') + 1);
  return fmt::format("torch.compile ended its process with {} {}{}{}",
                     run.exit.exited ? "exit code" : "signal", run.exit.status,
                     said.empty() ? "" : ": ", said);
}

}  // namespace

Result<MineAnswer> MineProblem(const MinerTerms& terms, const ProblemRequest& problem,
                               const std::string& mode) {
  PythonHostFiles files;
  files.problem_source = problem.source;
  files.settings = SettingsFor(terms, problem, mode);
  ASSAY_ASSIGN_OR_RETURN(SandboxRequest request,
                         PythonSandbox(terms.python, PythonRole::kMine, 1, files));
  // A problem is its user's own file: it may have what an oracle may.
  request.limits.memory_bytes = TotalMemoryBytes();
  request.limits.address_space_bytes = uint64_t{1} << 42;
  request.limits.scratch_bytes = kScratchBytes;
  request.limits.processes = std::max(request.limits.processes, kProcesses);
  request.limits.cpu_seconds = kTrustedCpuSeconds;
  if (terms.gpu != nullptr) {
    const auto nvcc = FindNvcc();
    ShowToolkit(*terms.gpu, nvcc ? nvcc->toolkit : "", &request);
    AllowDevice(*terms.gpu, &request);
  }
  ASSAY_ASSIGN_OR_RETURN(const GpuTurn turn, GpuTurn::Begin(terms.gpu, terms.stop));
  ASSAY_ASSIGN_OR_RETURN(const ToolRun run,
                         RunToolInSandbox(std::move(request), kOutput,
                                          Deadline::AfterSeconds(terms.timeout_s), terms.stop));
  if (run.artifact.empty()) return MineAnswer{{}, WithoutAnswer(run, terms.timeout_s)};
  ASSAY_ASSIGN_OR_RETURN(MineAnswer answer, MineAnswerFromJson(run.artifact));
  NameFiles(problem.path, "", &answer.refusal);
  return answer;
}

}  // namespace assay
