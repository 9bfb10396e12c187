#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/mine_command.h"
#include "cli/validators.h"
#include "mine/mined.h"

namespace assay {
namespace {

// The terms of the judgement, as in assay run.
void AddJudging(RunOptions* run, CLI::App& command) {
  command
      .add_option("--baseline", run->asked.baselines,
                  "The reference to beat, as in assay judge: eager, compiled, best...")
      ->capture_default_str();
  command
      .add_option("--threads", run->asked.threads,
                  "Threads of each side (default: all cores but one)")
      ->check(Between(1, 4096));
  command
      .add_option("--budget", run->asked.effort.speed_budget_s,
                  "Seconds for gate 2, speed, of each candidate")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--memory", run->asked.limits.memory, "Memory that a candidate may take")
      ->capture_default_str();
  command.add_flag("--correctness-only", run->asked.effort.correctness_only,
                   "Stop after gate 1, correctness");
  command.add_option("--workers", run->workers, "Workers of the GPU, as in assay run")
      ->check(Between(1, 16));
  command.add_flag("--no-save", run->no_save,
                   "Keep the verdicts in the folder alone: neither for assay explain, nor in the "
                   "archive");
  AddArchiveOption(command, &run->archive);
}

}  // namespace

void MineOptions::AddTo(CLI::App& command) {
  command
      .add_option("PROBLEMS", problems,
                  "Problems by name or .py file; folders of them; suites; checkouts of KernelBench")
      ->required();
  command.add_option("-o,--output", output, "Folder for all that is mined, judged and written")
      ->capture_default_str();
  command.add_option("--size", size, "Named size of the suite's problems, such as small");
  command
      .add_option("--set", set,
                  "NAME=VALUE: change a module-level constant of the problems (repeatable)")
      ->allow_extra_args(false);
  command
      .add_option("--device", device,
                  "Compile for, and judge on: cpu or cuda (default: the GPU where there is one)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      .add_option("--modes", modes,
                  fmt::format("Modes of torch.compile (default: {})", fmt::join(MineModes(), ",")))
      ->delimiter(',')
      ->check(CLI::IsMember(MineModes()));
  command
      .add_option("--compile-timeout", compile_timeout_s,
                  "Seconds that torch.compile may take for a problem in a mode")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_flag("--again", again, "Compile what was mined or refused before, too");
  AddJudging(&run, command);
  command.add_option("--python", run.asked.python,
                     "Python that has PyTorch with torch.compile (default: $ASSAY_PYTHON, or the "
                     "first found)");
  AddWeakSandboxFlag(command, &run.allow_weak_sandbox);
  command.add_flag("-q,--quiet", run.quiet, "No progress on stderr");
  command.add_flag("-v,--verbose", run.verbose, "Progress as plain lines");
  command.footer(
      "Each problem is compiled, and the code that torch.compile generated is judged as a "
      "candidate.\nCorrect ones go to FOLDER/kernelbook.jsonl (docs/mine.md). The same command "
      "again goes on.\n"
      "Examples:\n"
      "  assay mine softmax rms_norm --size small --device cuda -o mined\n"
      "  assay mine KernelBench --modes default -o pairs\n"
      "  assay import kernelbook mined/kernelbook.jsonl\n\n"
      "Exit codes: 0 all is mined or refused, and judged; 2 usage, or nothing could be mined; 8 "
      "this machine lacks\nsomething, such as a Python with torch.compile; 130 interrupted.");
}

}  // namespace assay
