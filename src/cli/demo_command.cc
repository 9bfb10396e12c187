// Four demonstrations, each on the real judge: why a library is hard to beat, why a kernel is
// warmed up before it is timed, how gate 1 finds a slip, and why softmax needs one pass alone.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "cli/exit_code.h"
#include "cli/options.h"
#include "doctor/doctor.h"
#include "problem/suite.h"
#include "report/card.h"
#include "report/demo_report.h"
#include "report/progress.h"
#include "report/terminal.h"
#include "sandbox/sandbox.h"
#include "session/judge.h"
#include "studies/first_calls.h"

namespace assay {
namespace {

struct Shipped {
  ProblemRequest problem;
  CandidateSource candidate;
};

// A kernel that comes with Assay, with its problem at size small but for what `set` changes.
Result<Shipped> FindShipped(const std::string& problem, const std::string& kernel,
                            const std::map<std::string, std::string>& set = {}) {
  Shipped shipped;
  ASSAY_ASSIGN_OR_RETURN(shipped.problem, ResolveProblem({problem, "small", set}, SuiteFolders()));
  ASSAY_ASSIGN_OR_RETURN(const std::string support, SupportFolder());
  const auto path = std::filesystem::path(support) / "kernels" / kernel;
  ASSAY_ASSIGN_OR_RETURN(shipped.candidate, ReadCandidate(path.string()));
  return shipped;
}

class Demonstration {
 public:
  explicit Demonstration(const DemoOptions& options)
      : python_(options.python),
        device_(options.device),
        stop_(InstallInterruptHandler()),
        style_(CardStyleFor(DetectTerminal(STDOUT_FILENO))) {
    ProgressOptions progress;
    progress.terminal = DetectTerminal(STDERR_FILENO);
    progress_.emplace(std::move(progress));
  }

  Result<std::string> Gap() {
    // Large enough that a GPU's library is not bound by its launch.
    const std::map<std::string, std::string> large = {
        {"ROWS", "4096"}, {"INNER", "4096"}, {"COLUMNS", "4096"}};
    ASSAY_ASSIGN_OR_RETURN(const Shipped shipped,
                           OnGpu() ? FindShipped("matmul", "matmul/naive.cu", large)
                                   : FindShipped("matmul", "matmul/naive.cpp"));
    std::string notice;
    MachineProfile machine = LoadMachineProfile(&notice);
    if (OnGpu() ? machine.gpus.empty() : machine.ceilings.empty()) {
      progress_->Update(OnGpu() ? "ceilings of this GPU" : "ceilings of this machine", 0);
      ASSAY_ASSIGN_OR_RETURN(machine, OnGpu() ? MeasureGpu(stop_) : MeasureCeilings(stop_));
    }
    ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, Judge(shipped, machine, false));
    if (const std::string other = GpuNotice(machine, verdict); !other.empty())
      return EnvironmentError(other);
    if (!verdict.roofline)
      return EnvironmentError("ceilings or times are missing, so there is no gap to show: " +
                              verdict.message);
    return RenderGap(verdict, style_);
  }

  Result<std::string> WarmUp() {
    FirstCallsRequest request;
    ASSAY_ASSIGN_OR_RETURN(
        const Shipped shipped,
        FindShipped("softmax", OnGpu() ? "softmax/one_read.cu" : "softmax/fused.cpp"));
    request.problem = shipped.problem;
    request.problem.device = device_;
    request.candidate = shipped.candidate;
    request.python = python_;
    request.stop = stop_;
    progress_->Update("a fresh process of each", 0);
    ASSAY_ASSIGN_OR_RETURN(const FirstCalls calls, TimeFirstCalls(request));
    progress_->Clear();
    return RenderFirstCalls(calls, style_);
  }

  Result<std::string> OffByOne() {
    ASSAY_ASSIGN_OR_RETURN(const Shipped shipped, FindShipped("softmax", "softmax/off_by_one.cpp"));
    ASSAY_ASSIGN_OR_RETURN(const Verdict verdict, Judge(shipped, {}, true));
    KeepVerdict(verdict);
    return RenderCard(verdict, style_) +
           "\nIts loop ends one column early; all other columns look right. Gate 1 compares each "
           "element with\na float64 run of the reference, so the one column stands out.\n";
  }

  std::string OnlineSoftmax() const { return RenderOnlineSoftmax({{1, 3}, {2, 5}}, style_); }

 private:
  bool OnGpu() const { return device_ == "cuda"; }

  Result<Verdict> Judge(const Shipped& shipped, const MachineProfile& machine,
                        bool correctness_only) {
    JudgeRequest request;
    request.terms.problem = shipped.problem;
    request.terms.problem.device = device_;
    request.candidates = {shipped.candidate};
    request.terms.python = python_;
    request.terms.machine = machine;
    request.terms.effort.correctness_only = correctness_only;
    std::vector<Verdict> verdicts;
    JudgeEvents events;
    events.progress = [&](const ProgressEvent& event) {
      progress_->Update(event.text, event.fraction);
    };
    events.verdict = [&](const Verdict& verdict) { verdicts.push_back(verdict); };
    ASSAY_RETURN_IF_ERROR(JudgeCandidates(request, events, stop_));
    progress_->Clear();
    return verdicts.front();
  }

  std::string python_, device_;
  StopToken stop_;
  CardStyle style_;
  std::optional<Progress> progress_;
};

}  // namespace

int RunDemo(const DemoOptions& options) {
  if (options.device == "cuda" && options.name != "gap" && options.name != "warmup")
    return ReportError(
        Error{ErrorKind::kUsage,
              fmt::format("demo {} runs on the CPU alone: leave out --device cuda", options.name)});
  Demonstration demonstration(options);
  const Result<std::string> text = options.name == "gap"          ? demonstration.Gap()
                                   : options.name == "warmup"     ? demonstration.WarmUp()
                                   : options.name == "off-by-one" ? demonstration.OffByOne()
                                                                  : demonstration.OnlineSoftmax();
  if (!text) return ReportError(text.error());
  std::fputs(text->c_str(), stdout);
  return kExitGood;
}

}  // namespace assay
