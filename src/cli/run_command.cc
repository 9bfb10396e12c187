#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "cli/cluster.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/places.h"
#include "cli/print.h"
#include "cli/recorder.h"
#include "cluster/queue_conductor.h"
#include "machine/machine.h"
#include "problem/gradients.h"
#include "report/progress.h"
#include "report/score_page.h"
#include "report/terminal.h"
#include "report/text.h"
#include "run/conductor.h"
#include "run/eval_results.h"
#include "run/run_record.h"
#include "run/run_report.h"
#include "score/score.h"
#include "worker/protocol.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kEvalResultsBytesMax = size_t{256} << 20;
constexpr size_t kDisagreementsShown = 20;
constexpr size_t kPageBytesMax = size_t{64} << 20;

// The folder for results: as asked for, or beside the candidates.
std::string ResultsFolder(const RunOptions& options) {
  if (!options.results.empty()) return options.results;
  std::error_code code;
  const fs::path first(options.paths.front());
  if (fs::is_directory(first, code)) return first.string();
  const fs::path folder = first.parent_path();
  return folder.empty() ? "." : folder.string();
}

// One call of assay run.
class RunCall {
 public:
  RunCall(const RunOptions& options, const std::atomic<bool>& interrupted)
      : options_(options),
        interrupted_(interrupted),
        gradients_(options.asked.problem.gradients),
        style_(CardStyleFor(DetectTerminal(STDOUT_FILENO))),
        progress_(OptionsFor(options)),
        folder_(ResultsFolder(options)),
        recorder_(options.archive, options.no_save) {}

  Result<int> Run() {
    std::vector<WorkerPlace> places;
    terms_ = options_.asked;
    if (options_.cluster.asked()) {
      ASSAY_ASSIGN_OR_RETURN(terms_.device, DeviceOfCluster(options_.cluster, options_.devices));
      if (options_.workers > 0) return UsageError("--workers: on a cluster --nodes says how many");
    } else {
      ASSAY_ASSIGN_OR_RETURN(places, PlacesOf(options_.devices));
      if (places.front().device == "cpu" && options_.workers > 1)
        return UsageError("--workers: on the CPU one worker has all cores");
      terms_.device = places.front().device;
    }
    terms_.problem = {};
    terms_.problem.gradients = gradients_;
    terms_.effort.futility = !options_.full;
    settings_ = TermsText(terms_);
    ASSAY_ASSIGN_OR_RETURN(
        plan_, MakeRunPlan({options_.paths, options_.problems, options_.size, options_.sizes,
                            options_.only, SuiteFolders(), gradients_}));
    if (plan_.problems.empty()) {
      Print(RenderPlan(plan_, {}, style_));
      return UsageError("nothing is left to judge");
    }
    AskedTerms first = terms_;
    first.problem = plan_.problems.front().choice;
    ASSAY_RETURN_IF_ERROR(ResolveTerms(first, {}));
    if (options_.dry_run) return ShowPlan();
    ASSAY_ASSIGN_OR_RETURN(rows_, RunRows::Open((fs::path(folder_) / kRunRowsName).string()));
    if (rows_->was_torn())
      Notice(fmt::format("{}/{}: the last row was torn, and is dropped", folder_, kRunRowsName));
    for (const std::string& trouble : plan_.troubles) Notice(trouble);
    ASSAY_ASSIGN_OR_RETURN(const std::vector<AskedProblem> before, ReadRunRecord(folder_));
    const std::string record = RunRecordText(plan_, before);
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(fs::path(folder_) / kRunRecordName, record));
    recorder_.RunBegan(folder_, record, settings_);
    return Conduct(places);
  }

 private:
  static ProgressOptions OptionsFor(const RunOptions& options) {
    ProgressOptions progress;
    if (!options.quiet) progress.terminal = DetectTerminal(STDERR_FILENO);
    progress.verbose = options.verbose && !options.quiet;
    return progress;
  }

  // Reads what is there; makes and locks nothing.
  Result<int> ShowPlan() {
    std::vector<bool> judged(plan_.items.size());
    std::vector<RunRow> rows;
    const std::string path = (fs::path(folder_) / kRunRowsName).string();
    std::error_code code;
    if (fs::exists(path, code)) {
      ASSAY_ASSIGN_OR_RETURN(rows, ReadRunRows(path));
      const auto known = RowsOfPlan(plan_, rows, settings_);
      for (size_t i = 0; i < known.size(); ++i)
        judged[i] = known[i] != nullptr && known[i]->verdict;
    }
    Print(RenderPlan(plan_, judged, style_));
    const auto left = static_cast<size_t>(std::count(judged.begin(), judged.end(), false));
    Print(RenderEstimate(rows, left));
    return plan_.troubles.empty() ? kExitGood : kExitUsage;
  }

  // Items without a verdict. An error in its place is tried again.
  std::vector<size_t> Todo() const {
    const auto known = RowsOfPlan(plan_, rows_->rows(), settings_);
    std::vector<size_t> todo;
    for (size_t i = 0; i < known.size(); ++i)
      if (options_.again || known[i] == nullptr || !known[i]->verdict) todo.push_back(i);
    return todo;
  }

  Result<int> Conduct(const std::vector<WorkerPlace>& places) {
    const std::vector<size_t> todo = Todo();
    if (todo.size() < plan_.items.size())
      Notice(fmt::format("{} of {} were judged before: {}/{}", plan_.items.size() - todo.size(),
                         plan_.items.size(), folder_, kRunRowsName));
    RunPace pace(todo.size(), MonotonicNs());
    ConductEvents events;
    events.date = UtcTimestamp;
    events.notice = [&](const std::string& text) {
      progress_.Clear();
      Notice(text);
    };
    events.progress = [&](const RunProgress& progress) {
      progress_.Update(
          fmt::format("{} | {}{}{}", pace.Text(MonotonicNs()),
                      progress.problem == nullptr ? "" : progress.problem->name,
                      progress.item == nullptr ? "" : fmt::format(" #{}", progress.item->sample),
                      progress.problem == nullptr ? progress.text : ": " + progress.text),
          pace.fraction());
    };
    events.rows = [&](std::vector<JudgedItem> judged) {
      for (const JudgedItem& each : judged) pace.Add(each.row);
      return KeepRows(std::move(judged));
    };
    ConductEnd end{0, std::nullopt};
    if (!todo.empty() && options_.cluster.asked())
      end = ConductOnCluster(todo, std::move(events));
    else if (!todo.empty())
      end = ConductHere(places, todo, std::move(events));
    progress_.Clear();
    ASSAY_RETURN_IF_ERROR(Finish());
    if (end.error) return std::unexpected(*end.error);
    return ExitCode();
  }

  ConductEnd ConductHere(const std::vector<WorkerPlace>& places, const std::vector<size_t>& todo,
                         ConductEvents events) {
    std::vector<std::string> more{"--sessions", "1"};
    if (options_.allow_weak_sandbox) more.push_back(fmt::format("--{}", kAllowWeakSandbox));
    std::error_code code;
    WorkerProcesses workers(fs::read_symlink("/proc/self/exe", code).string(),
                            PlacesForWorkers(places, options_.workers, UsableCpus()), more);
    return Conductor(plan_, terms_, workers, std::move(events)).Run(todo, StopToken(interrupted_));
  }

  ConductEnd ConductOnCluster(const std::vector<size_t>& todo, ConductEvents events) {
    const auto cluster =
        OpenCluster(options_.cluster, folder_, terms_.device, options_.allow_weak_sandbox);
    if (!cluster) return {todo.size(), cluster.error()};
    QueueRunTerms run;
    run.run = cluster->run;
    run.suites = SuiteFolders();
    QueueConductor conductor(plan_, terms_, *cluster->queue, cluster->pilots.get(), std::move(run),
                             std::move(events));
    return conductor.Run(todo, rows_->rows(), StopToken(interrupted_));
  }

  // The archive comes first: a row says that nothing of its candidate is left to do.
  Result<void> KeepRows(std::vector<JudgedItem> judged) {
    progress_.Clear();
    std::vector<JudgedCandidate> candidates;
    std::string lines;
    for (const auto& [row, item] : judged) {
      lines += RenderRunRow(row, style_);
      if (row.verdict && !options_.no_save) KeepVerdict(*row.verdict);
      candidates.push_back(
          {{row.candidate, plan_.items[item].source.content, row.problem, settings_},
           row.verdict ? &*row.verdict : nullptr,
           row.verdict ? nullptr : &*row.error});
    }
    recorder_.Judged(candidates);
    std::vector<RunRow> rows;
    for (JudgedItem& each : judged) rows.push_back(std::move(each.row));
    ASSAY_RETURN_IF_ERROR(rows_->Append(std::move(rows)));
    Print(lines);
    return {};
  }

  int ExitCode() const {
    if (!plan_.troubles.empty()) return kExitUsage;
    for (const RunRow* row : RowsOfPlan(plan_, rows_->rows(), settings_))
      if (row == nullptr || !row->verdict)
        return row != nullptr && row->error->kind == ErrorKind::kUsage ? kExitUsage
                                                                       : kExitEnvironment;
    return kExitGood;
  }

  // The sums, and the results in KernelBench's layout.
  Result<void> Finish() {
    const auto rows = RowsOfPlan(plan_, rows_->rows(), settings_);
    Print(fmt::format("{}: {}\n", Counted(static_cast<long long>(rows.size()), "candidate"),
                      OutcomeCounts(rows)));
    std::map<int, std::vector<const RunRow*>> by_level;
    for (const RunRow* row : rows)
      if (row != nullptr && row->problem_number > 0) by_level[row->level].push_back(row);
    for (const auto& [level, of_level] : by_level) {
      std::string name = gradients_ ? "eval_results_gradients" : "eval_results";
      if (by_level.size() > 1) name += fmt::format("_level_{}", level);
      ASSAY_RETURN_IF_ERROR(WriteEvalResults(name, of_level));
    }
    return WritePage();
  }

  // The page of assay score, over all that the folder has with gradients, or without. What does
  // not go together in one score has no page.
  Result<void> WritePage() {
    std::vector<Verdict> verdicts;
    for (const RunRow& row : rows_->rows()) {
      if (!row.verdict || HasGradients(row.verdict->problem) != gradients_) continue;
      verdicts.push_back(*row.verdict);
      if (verdicts.back().problem.level == 0) verdicts.back().problem.level = row.level;
    }
    if (verdicts.empty()) return {};
    SelectionRules rules;
    ASSAY_ASSIGN_OR_RETURN(rules.asked, ReadRunRecord(folder_));
    std::erase_if(rules.asked, [&](const AskedProblem& problem) {
      return problem.name.ends_with(kGradientsSuffix) != gradients_;
    });
    const auto selection = SelectVerdicts(verdicts, rules);
    if (!selection) {
      Notice(
          fmt::format("{}/{} is not written: {}", folder_, PageName(), selection.error().message));
      return {};
    }
    const fs::path path = PagePath();
    ASSAY_RETURN_IF_ERROR(
        WriteFileAtomically(path, RenderScorePage(ComputeScore(*selection, {}), folder_)));
    Notice("wrote " + path.string());
    return {};
  }

  const char* PageName() const { return gradients_ ? "report_gradients.html" : "report.html"; }

  // Never over a file of somebody else's: then ours stands beside it.
  fs::path PagePath() const {
    const fs::path path = fs::path(folder_) / PageName();
    std::error_code code;
    if (!fs::exists(path, code)) return path;
    const auto text = ReadFile(path, kPageBytesMax);
    return text && IsScorePage(*text) ? path
                                      : path.parent_path() / (path.stem().string() + "_assay.html");
  }

  // Never over a file of somebody else's: then ours stands beside it.
  Result<void> WriteEvalResults(const std::string& name, const std::vector<const RunRow*>& rows) {
    const fs::path folder(folder_);
    fs::path path = folder / (name + ".json");
    std::error_code code;
    if (fs::exists(path, code)) {
      const auto text = ReadFile(path, kEvalResultsBytesMax);
      const auto theirs = text ? ReadEvalResults(*text) : std::unexpected(text.error());
      if (!theirs || !theirs->ours) {
        if (theirs) ShowDisagreements(path.string(), *theirs, rows);
        path = folder / (name + "_assay.json");
      }
    }
    const std::vector<std::string> untimed = UntimedSamples(rows);
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(path, EvalResultsText(rows)));
    Notice("wrote " + path.string());
    if (!untimed.empty()) Notice(AboutUntimed(path.string(), untimed));
    return {};
  }

  static std::string AboutUntimed(const std::string& path, std::vector<std::string> untimed) {
    const size_t count = untimed.size();
    if (count > kDisagreementsShown) {
      untimed.resize(kDisagreementsShown);
      untimed.push_back(fmt::format("{} more", count - kDisagreementsShown));
    }
    return fmt::format(
        "left out of {}, being correct without a time, which KernelBench's scripts would average: "
        "{}; assay score counts {}",
        path, fmt::join(untimed, ", "), count == 1 ? "it" : "them");
  }

  void ShowDisagreements(const std::string& path, const EvalResults& theirs,
                         const std::vector<const RunRow*>& rows) const {
    const std::vector<std::string> lines = Disagreements(theirs, rows);
    Print(fmt::format("{}: {} of {} samples end otherwise here\n", path, lines.size(),
                      theirs.samples.size()));
    for (size_t i = 0; i < lines.size() && i < kDisagreementsShown; ++i)
      Print(fmt::format("  {}\n", Printable(lines[i], style_.unicode)));
    if (lines.size() > kDisagreementsShown)
      Print(fmt::format("  and {} more\n", lines.size() - kDisagreementsShown));
  }

  const RunOptions& options_;
  const std::atomic<bool>& interrupted_;
  const bool gradients_;
  const CardStyle style_;
  Progress progress_;
  const std::string folder_;
  Recorder recorder_;
  AskedTerms terms_;
  std::string settings_;
  RunPlan plan_;
  std::optional<RunRows> rows_;
};

}  // namespace

int RunRun(const RunOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  const auto code = RunCall(options, interrupted).Run();
  if (!code) return ReportError(code.error());
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment, "cannot write the results to stdout"});
  return *code;
}

}  // namespace assay
