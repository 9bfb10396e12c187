#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/print.h"
#include "doctor/doctor.h"
#include "gpu/gpu.h"
#include "ladder/climb.h"
#include "ladder/judge_name.h"
#include "ladder/ladder_chart.h"
#include "ladder/readme_table.h"
#include "ladder/rung_table.h"
#include "machine/machine.h"
#include "report/progress.h"
#include "report/terminal.h"

namespace assay {
namespace {

// Returns the ladders for one device: the one asked for, else the GPU if there is one, else the
// CPU.
Result<std::vector<Ladder>> LaddersOf(const LadderOptions& options, const std::string& gpu) {
  ASSAY_ASSIGN_OR_RETURN(std::vector<Ladder> all, FindLadders(options.path));
  const auto of = [&](std::string_view device) {
    std::vector<Ladder> some;
    for (const Ladder& ladder : all)
      if (ladder.device == device) some.push_back(ladder);
    return some;
  };
  if (!options.device.empty()) {
    std::vector<Ladder> asked = of(options.device);
    if (asked.empty())
      return UsageError(
          fmt::format("{} has no ladder for {}: leave --device out", options.path, options.device));
    return asked;
  }
  std::vector<Ladder> first = of(gpu.empty() ? "cpu" : "cuda");
  return first.empty() ? all : first;
}

// Returns the exit code for a rung: kExitGood for a correct one, however fast.
int CodeOf(const Verdict& verdict) {
  return IsCorrect(verdict.outcome) ? static_cast<int>(kExitGood) : ExitCodeOf(verdict.outcome);
}

// Judges ladders one after another.
class LadderRun {
 public:
  LadderRun(const LadderOptions& options, std::string gpu, const std::atomic<bool>& interrupted)
      : options_(options),
        interrupted_(interrupted),
        style_(CardStyleFor(DetectTerminal(STDOUT_FILENO))),
        progress_(OptionsFor(options)),
        gpu_(std::move(gpu)),
        judge_(JudgeName()) {
    if (options.minutes > 0) end_ns_ = MonotonicNs() + static_cast<int64_t>(options.minutes * 60e9);
  }

  Result<void> Open() {
    std::string notice;
    profile_ = LoadMachineProfile(&notice);
    if (!notice.empty()) Notice(notice);
    if (options_.out.empty() || options_.recorded) return {};
    ASSAY_ASSIGN_OR_RETURN(out_, RowFile::Open(options_.out));
    if (out_->was_torn())
      Notice(fmt::format("{}: the last row was torn, and is dropped", options_.out));
    return {};
  }

  // The first size or all of them. Errors end the ladder, not the call, but for kInterrupted.
  Result<void> OneLadder(const Ladder& ladder) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Rung> rungs, ChooseRungs(ladder, options_.only));
    for (const LadderSize& listed : ladder.sizes) {
      if (&listed != &ladder.sizes.front() && !options_.all_sizes) break;
      ASSAY_ASSIGN_OR_RETURN(const LadderSize size, WithSettings(listed, options_.set));
      ASSAY_RETURN_IF_ERROR(OneSize(ladder, size, rungs));
    }
    return {};
  }

  std::vector<int>& codes() { return codes_; }
  size_t left() const { return left_; }

 private:
  static ProgressOptions OptionsFor(const LadderOptions& options) {
    ProgressOptions progress;
    if (!options.quiet) progress.terminal = DetectTerminal(STDERR_FILENO);
    progress.verbose = options.verbose && !options.quiet;
    return progress;
  }

  Result<void> OneSize(const Ladder& ladder, const LadderSize& size,
                       const std::vector<Rung>& rungs) {
    const RungTable table(ladder, rungs, style_);
    if (options_.recorded) return ShowRecorded(ladder, size, rungs, table);
    PlanTerms terms{options_.asked, profile_, judge_,
                    ladder.device == "cuda" ? gpu_ : DescribeMachine().cpu, options_.again};
    static const std::vector<LadderRow> kNone;
    ASSAY_ASSIGN_OR_RETURN(ClimbPlan plan,
                           PlanClimb(ladder, size, rungs, terms, out_ ? out_->rows() : kNone));
    Print((shown_++ > 0 ? "\n" : "") + table.Head(size, judge_));
    const std::vector<CandidateSource> candidates = plan.request.candidates;
    ClimbTools tools;
    tools.keep = [&](const LadderRow& row) { return out_ ? out_->Append(row) : Result<void>(); };
    tools.saw = [&](const Verdict& verdict) {
      if (!options_.no_save) KeepVerdict(verdict);
    };
    tools.now_ns = MonotonicNs;
    tools.date = UtcTimestamp;
    tools.progress = [&](const ProgressEvent& event) { Progressed(event, candidates); };
    tools.finished = [&](const RungResult& result) {
      progress_.Clear();
      Print(table.Row(result));
      codes_.push_back(CodeOf(result.row->verdict));
    };
    const ClimbEnd end = Climb(ladder.name, judge_, &plan, end_ns_, interrupted_, tools);
    progress_.Clear();
    left_ += end.left;
    ASSAY_RETURN_IF_ERROR(Draw(ladder, size, plan.rungs));
    if (end.error) return std::unexpected(*end.error);
    if (interrupted_) return Fail(ErrorKind::kInterrupted, "interrupted");
    return {};
  }

  Result<void> ShowRecorded(const Ladder& ladder, const LadderSize& size,
                            const std::vector<Rung>& rungs, const RungTable& table) {
    std::string path = options_.out;
    if (path.empty()) {
      ASSAY_ASSIGN_OR_RETURN(path, ResultsPath(ladder));
    }
    ASSAY_ASSIGN_OR_RETURN(const std::vector<LadderRow> rows, ReadRows(path, ladder.name));
    const std::vector<RungResult> results = NewestResults(ladder, size, rungs, rows);
    std::set<std::string> judges;
    for (const RungResult& result : results)
      if (result.row) judges.insert(result.row->judge);
    std::string text =
        (shown_++ > 0 ? "\n" : "") + table.Head(size, fmt::format("{}", fmt::join(judges, ", ")));
    for (const RungResult& result : results) {
      text += table.Row(result);
      if (result.row) codes_.push_back(CodeOf(result.row->verdict));
    }
    Print(text);
    return Draw(ladder, size, results);
  }

  void Progressed(const ProgressEvent& event, const std::vector<CandidateSource>& candidates) {
    const bool of_rung = event.candidate < candidates.size() && event.candidates > 0 &&
                         event.stage != JudgeStage::kBuilding;
    const std::string rung =
        of_rung ? std::filesystem::path(candidates[event.candidate].path).stem().string() + ": "
                : "";
    progress_.Update(fmt::format("{}{}", rung, event.text), event.fraction);
  }

  Result<void> Draw(const Ladder& ladder, const LadderSize& size,
                    const std::vector<RungResult>& results) {
    Print(RenderRungBars(ladder, results, style_));
    if (options_.chart.empty() || drawn_) return {};
    drawn_ = true;
    ASSAY_RETURN_IF_ERROR(
        WriteFileAtomically(options_.chart, RenderLadderSvg(ladder, size, results)));
    Notice("wrote " + options_.chart);
    return {};
  }

  const LadderOptions& options_;
  const std::atomic<bool>& interrupted_;
  const CardStyle style_;
  Progress progress_;
  const std::string gpu_;
  const std::string judge_;
  int64_t end_ns_ = std::numeric_limits<int64_t>::max();
  MachineProfile profile_;
  std::optional<RowFile> out_;
  std::vector<int> codes_;
  size_t left_ = 0;   // rungs that were not judged
  size_t shown_ = 0;  // tables
  bool drawn_ = false;
};

// Writes a made file, or with --check says how it differs. Returns the exit code.
int CheckOrWrite(const std::string& path, const std::string& made, bool check) {
  const std::string old = ReadFile(path, kReadmeBytesMax).value_or(std::string());
  if (old == made) return kExitGood;
  if (check) {
    Print(fmt::format("{}: differs: {}\n", path, FirstDifference(old, made)));
    return kExitNotFaster;
  }
  if (auto written = WriteFileAtomically(path, made); !written) return ReportError(written.error());
  Notice("wrote " + path);
  return kExitGood;
}

// Writes the READMEs of ladders and their charts, or with --check says which differ.
int RunReadmes(const LadderOptions& options) {
  const auto ladders = FindLadders(options.path);
  if (!ladders) return ReportError(ladders.error());
  std::vector<int> codes;
  std::set<std::string> folders;
  for (const Ladder& ladder : *ladders) {
    if (!folders.insert(ladder.folder).second) continue;
    const std::string path = ladder.folder + "/README.md";
    std::error_code unknown;
    if (!std::filesystem::exists(path, unknown)) continue;
    const auto made = MakeReadme(path);
    if (!made) {
      codes.push_back(ReportError({made.error().kind, path + ": " + made.error().message}));
      continue;
    }
    for (const auto& [file, content] : *made)
      codes.push_back(CheckOrWrite(file, content, options.check));
  }
  return CombineExitCodes(codes);
}

}  // namespace

int RunLadder(const LadderOptions& options) {
  if (options.readme || options.check) return RunReadmes(options);
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  const std::vector<std::string> gpus = GpuNames();
  const std::string gpu = gpus.empty() ? "" : gpus.front();
  const auto ladders = LaddersOf(options, gpu);
  if (!ladders) return ReportError(ladders.error());
  if (!options.chart.empty() && ladders->size() > 1)
    return ReportError(
        {ErrorKind::kUsage, fmt::format("--chart draws one ladder, and {} has {}: name one, as {}",
                                        options.path, ladders->size(), ladders->front().folder)});
  if (!options.recorded) HeedWeakSandboxFlag(options.allow_weak_sandbox);
  LadderRun run(options, gpu, interrupted);
  if (auto opened = run.Open(); !opened) return ReportError(opened.error());
  for (const Ladder& ladder : *ladders) {
    const auto climbed = run.OneLadder(ladder);
    if (climbed) continue;
    run.codes().push_back(ReportError(
        {climbed.error().kind, fmt::format("{}: {}", ladder.Path(), climbed.error().message)}));
    if (run.codes().back() == kExitInterrupted) return kExitInterrupted;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment, "cannot write the table to stdout"});
  if (run.left() > 0 && options.minutes > 0) {
    Notice(fmt::format("{} left: the same call with --out goes on with them", run.left()));
    run.codes().push_back(kExitBudget);
  }
  return CombineExitCodes(run.codes());
}

}  // namespace assay
