// print_sample_pages FOLDER: writes each page of the server to FOLDER, from committed results, with
// the policy that the server sends for them in policy.txt. Browser tests look at them.
#include <fmt/format.h>

#include <cstdio>

#include "base/files.h"
#include "web/assets.h"
#include "web/entry_pages.h"
#include "web/job_pages.h"
#include "web/machine_page.h"
#include "web/parts.h"
#include "web/sample_views.h"
#include "web/submit_page.h"

namespace assay {
namespace {

class Printer {
 public:
  Printer(SampleData data, std::string folder)
      : data_(std::move(data)), folder_(std::move(folder)) {
    student_.viewer = {Account{3, "student 1 (example)", Role::kStudent, 1}, "0123456789abcdef"};
    student_.example = true;
  }

  Result<void> Print() {
    ASSAY_RETURN_IF_ERROR(Keep("policy.txt", std::string(PageSecurityPolicy())));
    ASSAY_RETURN_IF_ERROR(Boards());
    ASSAY_RETURN_IF_ERROR(Problems());
    ASSAY_RETURN_IF_ERROR(Verdicts());
    ASSAY_RETURN_IF_ERROR(Jobs());
    ASSAY_RETURN_IF_ERROR(Runs());
    ASSAY_RETURN_IF_ERROR(Ladders());
    return Doors();
  }

 private:
  Result<void> Keep(const std::string& name, const std::string& text) {
    return WriteFileAtomically(folder_ + "/" + name, text, Durability::kFleeting);
  }

  Result<void> Boards() {
    ASSAY_RETURN_IF_ERROR(Keep("board.html", RenderBoardPage(SampleBoard(data_, {}), student_)));
    BoardFilter two;
    two.p = 2;
    ASSAY_RETURN_IF_ERROR(
        Keep("board-p2.html", RenderBoardPage(SampleBoard(data_, two), student_)));
    BoardFilter one;
    one.problem = "softmax";
    ASSAY_RETURN_IF_ERROR(
        Keep("board-problem.html", RenderBoardPage(SampleBoard(data_, one), student_)));
    BoardFilter none;
    none.problem = "no such problem";
    return Keep("board-empty.html", RenderBoardPage(SampleBoard(data_, none), {}));
  }

  Result<void> Problems() {
    ASSAY_RETURN_IF_ERROR(Keep(
        "problems.html", RenderProblemsPage(RenderProblems(SampleProblems(data_), ""), student_)));
    ASSAY_ASSIGN_OR_RETURN(const ProblemView problem, SampleProblem(data_, "layer_norm"));
    return Keep("problem.html",
                RenderProblemPage(problem.problem.name, RenderProblem(problem), student_));
  }

  Result<void> Verdicts() {
    const VerdictView fast = SampleVerdict(data_, "814b70bddabf");   // layer_norm, fused
    const VerdictView slow = SampleVerdict(data_, "9411ebf33f66");   // layer_norm, simple
    const VerdictView wrong = SampleVerdict(data_, "531b5592ba27");  // softmax, off by one
    ASSAY_RETURN_IF_ERROR(Keep("verdict.html", RenderVerdictPage(fast, student_)));
    ASSAY_RETURN_IF_ERROR(Keep("verdict-wrong.html", RenderVerdictPage(wrong, student_)));
    CompareView compare{slow, fast};
    compare.may_ask = true;
    ASSAY_RETURN_IF_ERROR(Keep("compare.html", RenderComparePage(compare, student_)));
    compare.paired = *HeadlineOf(fast.verdict);
    return Keep("compare-paired.html", RenderComparePage(compare, student_));
  }

  Result<void> Jobs() {
    const Account ada = *student_.viewer.account, model{7, "a model", Role::kMachine, 1};
    Job queued;
    queued.id = 12;
    queued.author = ada;
    queued.problem = "softmax";
    queued.size = "small";
    queued.name = "mine.cpp";
    queued.made = "2026-11-27T20:15:00Z";
    queued.place = 3;
    Job running = queued;
    running.id = 11;
    running.state = JobState::kRunning;
    running.author = model;
    running.problem = "matmul";
    running.name = "try7.cpp";
    running.place = 0;
    running.runner = data_.examples.runner;
    running.attempts = 1;
    Job done = running, failed = queued;
    done.id = 10;
    done.state = JobState::kDone;
    done.outcome = "faster";
    done.verdict = "814b70bddabf";
    done.ended = "2026-11-27T20:14:09Z";
    failed.id = 9;
    failed.place = 0;
    failed.state = JobState::kFailed;
    failed.failure = "three runners went away while they had it";
    JobsView list{{queued, running, done, failed}, 1, 1, 1};
    ASSAY_RETURN_IF_ERROR(Keep("jobs.html", RenderJobsPage(list, student_)));
    JobView job{running,
                {{1, "2026-11-27T20:14:12Z", "progress", "building", "building try7.cpp", 0.5},
                 {2, "2026-11-27T20:14:15Z", "progress", "correctness", "draw 4 of 12", 0.33},
                 {3, "2026-11-27T20:14:20Z", "progress", "speed", "pair 3, 1.2x so far", 0.3}},
                true};
    ASSAY_RETURN_IF_ERROR(Keep("job.html", RenderJobPage(job, student_)));
    ASSAY_RETURN_IF_ERROR(Keep("job-queued.html", RenderJobPage({queued, {}, true}, student_)));
    return Keep("job-failed.html", RenderJobPage({failed, {}, false}, student_));
  }

  Result<void> Runs() {
    ASSAY_ASSIGN_OR_RETURN(RunView run, SampleRun(data_));
    ASSAY_RETURN_IF_ERROR(Keep("runs.html", RenderRunsPage({run}, student_)));
    ASSAY_RETURN_IF_ERROR(Keep("run.html", RenderRunPage(run, student_)));
    run.is_live = true;
    run.nodes.resize(20);
    return Keep("run-live.html", RenderRunPage(run, student_));
  }

  Result<void> Ladders() {
    ASSAY_ASSIGN_OR_RETURN(const auto cpu,
                           SampleLadder(data_, "softmax-ladder/ladder-cpu.toml", "cpu-2core"));
    ASSAY_ASSIGN_OR_RETURN(const auto gpu,
                           SampleLadder(data_, "softmax-ladder/ladder.toml", "h100"));
    ASSAY_RETURN_IF_ERROR(
        Keep("ladders.html", RenderLaddersPage({cpu.front(), gpu.front()}, student_)));
    return Keep("ladder.html", RenderLadderPage(gpu, student_));
  }

  Result<void> Doors() {
    MachineView machine;
    machine.profiles = {data_.examples.machine};
    machine.runners = {
        {"local", "cpu", "0.1.0", "", true, "2026-11-27T20:15:00Z", 11},
        {"laptop", "cpu", "0.1.0", "student 1 (example)", false, "2026-11-27T20:14:00Z", 0, false}};
    machine.queued = machine.running = 1;
    ASSAY_RETURN_IF_ERROR(Keep("machine.html", RenderMachinePage(machine, student_)));
    SubmitView submit;
    for (const SuiteProblem& problem : data_.suite.problems) {
      submit.problems.push_back({problem.name, {}});
      for (const auto& [size, constants] : problem.sizes)
        submit.problems.back().sizes.push_back(size);
    }
    submit.problem = "layer_norm";
    submit.name = "fused.cpp";
    submit.source = SampleVerdict(data_, "814b70bddabf").source;
    submit.left_today = 41;
    submit.deadline = "2026-12-04T18:00:00Z";
    ASSAY_RETURN_IF_ERROR(Keep("submit.html", RenderSubmitPage(submit, student_)));
    ASSAY_RETURN_IF_ERROR(Keep("login.html", RenderLoginPage("No account has that token.", {})));
    ASSAY_RETURN_IF_ERROR(
        Keep("join.html", RenderJoinPage({.code = "c0de", .class_name = "Kernels 101"}, {})));
    ASSAY_RETURN_IF_ERROR(
        Keep("welcome.html",
             RenderWelcomePage("student 1", "9f86d081884c7d659a2feaa0c55ad015", PageFrame{})));
    return Keep("error.html", RenderErrorPage({429, "The queue is full: 200 jobs wait.", 30}, {}));
  }

  SampleData data_;
  std::string folder_;
  PageFrame student_;
};

Result<void> PrintPages(const std::string& folder) {
  ASSAY_ASSIGN_OR_RETURN(SampleData data, ReadSampleData(ASSAY_SOURCE_DIRECTORY));
  return Printer(std::move(data), folder).Print();
}

}  // namespace
}  // namespace assay

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("print_sample_pages FOLDER\n", stderr);
    return 2;
  }
  if (const auto printed = assay::PrintPages(argv[1]); !printed) {
    std::fprintf(stderr, "%s\n", printed.error().message.c_str());
    return 1;
  }
  return 0;
}
