#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "cli/audit_problems.h"
#include "cli/exit_code.h"
#include "cli/options.h"
#include "correctness/gate1_run.h"
#include "machine/machine.h"
#include "report/audit_report.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "sandbox/sandbox.h"
#include "studies/audit.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

// Two at a time: an audit's host spends a good part of its time importing PyTorch.
int DefaultJobs() { return UsableCpus().size() > 1 ? 2 : 1; }

Json MarginToJson(double margin) {
  return std::isfinite(margin) ? Json(margin) : Json();  // null: beyond every bound
}

Json ToJson(const MutantRecord& mutant) {
  return {{"family", mutant.family},
          {"subject", mutant.subject.empty() ? Json() : Json(mutant.subject)},
          {"mutant", mutant.words},
          {"result", MutantResultName(mutant.result)},
          {"margin", MarginToJson(mutant.margin)},
          {"ordinary_margin", MarginToJson(mutant.ordinary_margin)},
          {"draw", mutant.draw},
          {"passes_ordinary", mutant.passes_ordinary},
          {"mend", mutant.mend.empty() ? Json() : Json(mutant.mend)}};
}

Json ToJson(const OperatorRecord& called) {
  return {{"name", called.name},
          {"line", called.line},
          {"result", OperatorResultName(called.result)},
          {"mutant", called.mutant.empty() ? Json() : Json(called.mutant)},
          {"mend", called.mend.empty() ? Json() : Json(called.mend)}};
}

Json ToJson(const AuditFinding& finding) {
  return {{"finding", finding.name},
          {"subject", finding.subject.empty() ? Json() : Json(finding.subject)},
          {"detail", finding.detail},
          {"margin", finding.margin ? MarginToJson(*finding.margin) : Json()},
          {"mend", finding.mend.empty() ? Json() : Json(finding.mend)}};
}

Json ToJson(const ProblemAudit& audit) {
  Json findings = Json::array(), mutants = Json::array(), operators = Json::array();
  for (const AuditFinding& finding : audit.findings) findings.push_back(ToJson(finding));
  for (const MutantRecord& mutant : audit.mutants) mutants.push_back(ToJson(mutant));
  for (const OperatorRecord& called : audit.operators) operators.push_back(ToJson(called));
  const MutantRecord* weakest = audit.Weakest();
  return {{"name", audit.problem.name},
          {"path", audit.problem.path},
          {"level", audit.problem.level},
          {"size", audit.problem.size},
          {"set", audit.problem.set},
          {"result", !audit.error.empty() ? "not-audited"
                     : audit.degenerate() ? "degenerate"
                                          : "clean"},
          {"error", audit.error.empty() ? Json() : Json(audit.error)},
          {"tolerance", audit.tolerance},
          {"required_class", audit.required_class},
          {"draws", audit.draws},
          {"killed", audit.Count(MutantResult::kKilled)},
          {"survived", audit.Count(MutantResult::kSurvived)},
          {"equivalent", audit.Count(MutantResult::kEquivalent)},
          {"left_out", audit.left_out},
          {"weakest", weakest != nullptr ? ToJson(*weakest) : Json()},
          {"findings", findings},
          {"mutants", mutants},
          {"operators", operators},
          {"seconds", audit.seconds}};
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Audits run side by side and are told in the order in which they were asked for.
class AuditRun {
 public:
  AuditRun(const AuditOptions& options, std::vector<AskedAudit> asked, PythonRuntime python,
           const std::atomic<bool>& interrupted)
      : options_(options),
        asked_(std::move(asked)),
        python_(std::move(python)),
        interrupted_(interrupted),
        progress_(OptionsFor(options)),
        done_(asked_.size()) {
    seed_ = options.seed != 0 ? options.seed
                              : (uint64_t{std::random_device{}()} << 20 ^ std::random_device{}());
    jobs_ = std::min<size_t>(static_cast<size_t>(options.jobs > 0 ? options.jobs : DefaultJobs()),
                             std::max<size_t>(1, asked_.size()));
  }

  // Those that ended, in order; less than were asked for after an interrupt.
  std::vector<ProblemAudit> Run() {
    std::vector<std::thread> workers;
    for (size_t i = 0; i < jobs_; ++i) workers.emplace_back([this] { Work(); });
    for (std::thread& worker : workers) worker.join();
    progress_.Clear();
    std::vector<ProblemAudit> audits;
    for (auto& audit : done_)
      if (audit) audits.push_back(std::move(*audit));
    return audits;
  }

  uint64_t seed() const { return seed_; }

 private:
  static ProgressOptions OptionsFor(const AuditOptions& options) {
    ProgressOptions progress;
    if (!options.quiet) progress.terminal = DetectTerminal(STDERR_FILENO);
    progress.verbose = options.verbose && !options.quiet;
    return progress;
  }

  void Work() {
    for (;;) {
      size_t index = 0;
      {
        const std::lock_guard lock(mutex_);
        if (next_ == asked_.size() || interrupted_) return;
        index = next_++;
      }
      std::optional<ProblemAudit> audit = One(index);
      if (!audit) return;  // interrupted
      const std::lock_guard lock(mutex_);
      ++finished_;
      done_[index] = std::move(audit);
      Tell();
    }
  }

  std::optional<ProblemAudit> One(size_t index) {
    const AskedAudit& asked = asked_[index];
    if (!asked.error.empty()) {
      ProblemAudit audit;
      audit.problem = asked.problem;
      audit.error = asked.error;
      return audit;
    }
    AuditRequest request;
    request.problem = asked.problem;
    request.python = python_;
    request.threads = options_.threads;
    request.precision = options_.precision;
    request.tolerance = options_.tolerance;
    request.seed = seed_;
    request.ordinary_only = options_.ordinary_only;
    request.memory_bytes = AvailableMemoryBytes() / 4 * 3 / jobs_;
    request.stop = StopToken(interrupted_);
    auto audit = AuditProblem(request, [&](const std::string& stage, double fraction) {
      size_t finished = 0;
      {
        const std::lock_guard lock(mutex_);
        finished = finished_;
      }
      const double whole =
          (static_cast<double>(finished) + fraction) / static_cast<double>(asked_.size());
      progress_.Update(fmt::format("audit: {} of {} ({}: {})", finished, asked_.size(),
                                   asked.problem.name, stage),
                       std::min(whole, 1.0));
    });
    if (!audit) return std::nullopt;
    return std::move(*audit);
  }

  // As JSON lines, whatever has ended and was not told; the lock is held.
  void Tell() {
    if (!options_.jsonl) return;
    for (; told_ < done_.size() && done_[told_]; ++told_) {
      const Json line = {
          {"schema", "assay.event/1"}, {"event", "audit"}, {"audit", ToJson(*done_[told_])}};
      std::fputs(Dump(line, -1).c_str(), stdout);
      std::fflush(stdout);
    }
  }

  const AuditOptions& options_;
  const std::vector<AskedAudit> asked_;
  const PythonRuntime python_;
  const std::atomic<bool>& interrupted_;
  Progress progress_;
  uint64_t seed_ = 0;
  size_t jobs_ = 1;
  std::mutex mutex_;
  size_t next_ = 0, finished_ = 0, told_ = 0;      // guarded by mutex_
  std::vector<std::optional<ProblemAudit>> done_;  // likewise
};

int ExitCodeFor(const std::vector<ProblemAudit>& audits) {
  const auto degenerate = [](const ProblemAudit& audit) { return audit.degenerate(); };
  const auto failed = [](const ProblemAudit& audit) { return !audit.error.empty(); };
  if (std::any_of(audits.begin(), audits.end(), degenerate)) return kExitWrong;
  if (std::all_of(audits.begin(), audits.end(), failed)) return kExitUsage;
  return kExitGood;
}

Result<PythonRuntime> Ready(const AuditOptions& options) {
  if (!ProbeSandbox().available) return EnvironmentError(ProbeSandbox().missing);
  if (options.threads > static_cast<int>(UsableCpus().size()))
    return UsageError(fmt::format(
        "--threads {} is more than the {} cores that this process may use: give no more",
        options.threads, UsableCpus().size()));
  // Said once, not once a problem.
  const auto finest = RuleFor({}, options.precision, options.tolerance, PrecisionClass::kFloat32);
  if (!finest) return std::unexpected(finest.error());
  return FindPython(options.python);
}

}  // namespace

int RunAudit(const AuditOptions& options) {
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  auto asked = AskedProblems(options.problems, options.size, options.set, SuiteFolders());
  const JsonForm form = options.jsonl  ? JsonForm::kLines
                        : options.json ? JsonForm::kDocument
                                       : JsonForm::kNone;
  if (!asked) return ReportError(asked.error(), form);
  auto python = Ready(options);
  if (!python) return ReportError(python.error(), form);
  AuditRun run(options, std::move(*asked), std::move(*python), interrupted);
  const std::vector<ProblemAudit> audits = run.Run();
  const int code = interrupted ? static_cast<int>(kExitInterrupted) : ExitCodeFor(audits);
  std::string text;
  if (options.jsonl) {
    text = Dump({{"schema", "assay.event/1"}, {"event", "end"}, {"exit_code", code}}, -1);
  } else if (options.json) {
    Json problems = Json::array();
    for (const ProblemAudit& audit : audits) problems.push_back(ToJson(audit));
    text = Dump({{"schema", "assay.audit/1"},
                 {"seed", std::to_string(run.seed())},
                 {"ordinary_only", options.ordinary_only},
                 {"problems", problems},
                 {"exit_code", code}},
                2);
  } else if (!audits.empty()) {
    text = RenderAudit(audits, CardStyleFor(DetectTerminal(STDOUT_FILENO)));
  }
  std::fputs(text.c_str(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    return ReportError({ErrorKind::kEnvironment, "cannot write the audit to stdout"});
  if (interrupted) return ReportError({ErrorKind::kInterrupted, "interrupted"});
  return code;
}

}  // namespace assay
