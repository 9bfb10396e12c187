#include "cli/mine_command.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "cli/audit_problems.h"
#include "cli/exit_code.h"
#include "cli/print.h"
#include "gpu/clocks.h"
#include "mine/mine_folder.h"
#include "mine/miner.h"
#include "mine/pairs.h"
#include "report/terminal.h"
#include "report/text.h"
#include "run/rows.h"
#include "session/asked_terms.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

Result<Gpu> OpenGpu() {
  ASSAY_ASSIGN_OR_RETURN(Gpu gpu, Gpu::Open());
  if (const auto clocks = GpuClocks::Open(gpu.facts().uuid))
    gpu.SetNodeNumber(clocks->NodeNumber());
  return gpu;
}

// One call of assay mine.
class MineCall {
 public:
  MineCall(const MineOptions& options, const std::atomic<bool>& interrupted)
      : options_(options),
        stop_(interrupted),
        device_(!options.device.empty() ? options.device
                : GpuNames().empty()    ? "cpu"
                                        : "cuda"),
        unicode_(CardStyleFor(DetectTerminal(STDOUT_FILENO)).unicode) {}

  Result<int> Run() {
    ASSAY_ASSIGN_OR_RETURN(
        problems_, AskedProblems(options_.problems, options_.size, options_.set, SuiteFolders()));
    ASSAY_RETURN_IF_ERROR(RequireSandbox());
    ASSAY_ASSIGN_OR_RETURN(auto folder, MineFolder::Open(options_.output));
    ASSAY_RETURN_IF_ERROR(MineAll(&folder));
    ASSAY_ASSIGN_OR_RETURN(const std::string manifest, folder.WriteManifest(keys_));
    if (refused_ == keys_.size()) {
      return UsageError(
          fmt::format("nothing could be mined: {}/{} says why", options_.output, kMinedName));
    }
    const int code = Judge(manifest);
    // A run that could not begin has said why, and has no rows.
    if (std::error_code error; !fs::exists(fs::path(options_.output) / kRunRowsName, error))
      return code;
    ASSAY_RETURN_IF_ERROR(WritePairs(folder));
    return faulty_ && code == kExitGood ? kExitUsage : code;
  }

 private:
  Result<void> MineAll(MineFolder* folder) {
    MinerTerms terms;
    ASSAY_ASSIGN_OR_RETURN(terms.python, FindPython(options_.run.asked.python));
    std::optional<Gpu> gpu;
    if (device_ == "cuda") {
      ASSAY_ASSIGN_OR_RETURN(gpu, OpenGpu());
      terms.gpu = &*gpu;
    }
    terms.timeout_s = options_.compile_timeout_s;
    terms.stop = stop_;
    for (AskedAudit& asked : problems_) {
      if (!asked.error.empty()) {
        Notice(asked.error);
        faulty_ = true;
        continue;
      }
      asked.problem.device = device_;
      asked.problem.path = fs::absolute(asked.problem.path).lexically_normal().string();
      for (const std::string& mode : options_.modes.empty() ? MineModes() : options_.modes)
        ASSAY_RETURN_IF_ERROR(MineOne(terms, asked.problem, mode, folder));
    }
    return {};
  }

  Result<void> MineOne(const MinerTerms& terms, const ProblemRequest& problem,
                       const std::string& mode, MineFolder* folder) {
    Mined mined;
    mined.device = terms.gpu != nullptr ? terms.gpu->Describe() : "cpu";
    mined.key = MineKey(problem, mode, mined.device,
                        terms.python.executable + " " + terms.python.torch_version);
    const Mined* known = options_.again ? nullptr : folder->Find(mined.key);
    if (known != nullptr && known->path != problem.path) {  // the same file in another place
      Mined moved = *known;
      moved.path = problem.path;
      ASSAY_RETURN_IF_ERROR(folder->Keep(std::move(moved)));
      known = folder->Find(mined.key);
    }
    if (known == nullptr) {
      const int64_t begin_ns = MonotonicNs();
      ASSAY_ASSIGN_OR_RETURN(MineAnswer answer, MineProblem(terms, problem, mode));
      mined.date = UtcTimestamp();
      mined.problem = problem.name;
      mined.path = problem.path;
      mined.size = problem.size;
      mined.set = problem.set;
      mined.hash = Sha256Hex(problem.source);
      mined.mode = mode;
      mined.code = std::move(answer.code);
      mined.refusal = std::move(answer.refusal);
      const std::string key = mined.key;
      ASSAY_RETURN_IF_ERROR(folder->Keep(std::move(mined)));
      known = folder->Find(key);
      if (!options_.run.quiet)
        Print(Describe(*known, static_cast<double>(MonotonicNs() - begin_ns)));
    }
    keys_.push_back(known->key);
    if (!known->refusal.empty()) ++refused_;
    return {};
  }

  std::string Describe(const Mined& mined, double time_ns) const {
    const std::string subject = fmt::format("{} ({})", mined.problem, mined.mode);
    if (!mined.refusal.empty())
      return fmt::format("refused {}: {}\n", subject, Printable(mined.refusal, unicode_));
    const MinedCode& code = mined.code;
    return fmt::format(
        "mined   {}: {}{}, {}\n", subject,
        Counted(static_cast<long long>(code.kernels.size()), "kernel"),
        code.libraries.empty()
            ? ""
            : fmt::format(", calls {}",
                          Printable(fmt::format("{}", fmt::join(code.libraries, ", ")), unicode_)),
        FormatDuration(time_ns));
  }

  // Judges as assay run does, into the same folder.
  int Judge(const std::string& manifest) const {
    RunOptions run = options_.run;
    run.paths = {manifest};
    run.results = options_.output;
    run.devices = {device_};
    run.asked.one_size = true;  // the code is for one size
    return RunRun(run);
  }

  Result<void> WritePairs(const MineFolder& folder) const {
    const fs::path output(options_.output);
    ASSAY_ASSIGN_OR_RETURN(const std::vector<RunRow> rows,
                           ReadRunRows((output / kRunRowsName).string()));
    const MinedPairs pairs = PairsOf(folder.all(), rows);
    std::string text;
    for (const std::string& line : pairs.lines) text += line + "\n";
    const std::string path = (output / kPairsName).string();
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, text));
    std::map<std::string, int64_t> reasons;
    for (const std::string& key : keys_)
      if (const Mined* mined = folder.Find(key); !mined->refusal.empty()) ++reasons[mined->refusal];
    Print(fmt::format("mined {} of {}; refused {}\n", keys_.size() - refused_, keys_.size(),
                      refused_));
    for (const auto& [reason, count] : reasons)
      Print(fmt::format("  {} refused: {}\n", count, Printable(reason, unicode_)));
    std::string others;
    for (const auto& [outcome, count] : pairs.others)
      others += fmt::format(", {} {}", count, outcome);
    const auto correct = static_cast<long long>(pairs.lines.size());
    Print(fmt::format("wrote {}: {}, {} of them faster{}\n", path, Counted(correct, "correct pair"),
                      pairs.faster, others));
    return {};
  }

  const MineOptions& options_;
  const StopToken stop_;
  const std::string device_;
  const bool unicode_;
  std::vector<AskedAudit> problems_;
  std::vector<std::string> keys_;  // asked for, in order
  size_t refused_ = 0;             // of these
  bool faulty_ = false;            // a problem could not be read
};

}  // namespace

int RunMine(const MineOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  HeedWeakSandboxFlag(options.run.allow_weak_sandbox);
  const auto code = MineCall(options, interrupted).Run();
  if (!code) return ReportError(UnlessInterrupted(code.error()));
  return *code;
}

}  // namespace assay
