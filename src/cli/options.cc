// The options of every subcommand. They stand in one file because parsing them is the one use of
// CLI11, which takes five seconds to compile in each file that includes it.
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/config.h"

namespace assay {

void AddWeakSandboxFlag(CLI::App& command, bool* allowed) {
  command.add_flag(std::string("--") + kAllowWeakSandbox, *allowed,
                   "Go on where the sandbox's self-test fails: for code that you trust");
}

void ProblemOptions::AddTo(CLI::App& command) {
  command
      .add_option("PROBLEM", problem,
                  "A KernelBench-form .py file, or the name of a problem in an installed suite")
      ->required();
  command.add_option("--size", size, "Named size from suite.toml, such as tiny, small or large");
  command
      .add_option("--set", set,
                  "NAME=VALUE: change a module-level constant of the problem (repeatable)")
      ->allow_extra_args(false);
}

namespace {

// Limits, effort and tools.
void AddEffort(AskedTerms* asked, bool* profile, std::string* sanitize, CLI::App& command) {
  command.add_flag("--no-replay", asked->no_replay,
                   "On a GPU: time calls as they are launched one by one, launching included");
  command.add_flag("--profile", *profile,
                   "On a GPU: after the verdict, read counters of one call with Nsight Compute");
  command
      .add_option("--sanitize", *sanitize,
                  "On a GPU: after the verdict, have Compute Sanitizer look at one call: memcheck, "
                  "racecheck, initcheck or synccheck")
      ->check(CLI::IsMember({"memcheck", "racecheck", "initcheck", "synccheck"}));
  command.add_option("--seed", asked->seed, "Seed of every draw (default: a fresh one, printed)");
  command.add_option("--timeout", asked->limits.timeout_s, "Seconds that one call may take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      .add_option("--build-timeout", asked->limits.build_timeout_s,
                  "Seconds that compiling may take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command.add_option("--memory", asked->limits.memory, "Memory that a candidate may take")
      ->capture_default_str();
  command
      .add_option("--budget", asked->effort.speed_budget_s,
                  "Seconds for gate 2, a candidate and baseline")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command
      .add_option(
          "--sustained", asked->effort.sustained_s,
          "After the verdict, run both sides for so many seconds each without a pause: what "
          "calls take once clocks have come down")
      ->check(CLI::Range(0.5, 600.0));
}

}  // namespace

void JudgeOptions::AddTo(CLI::App& command) {
  problem.AddTo(command);
  command.add_option("CANDIDATE", candidates, "Candidates: .cpp, .c, .cu or .py files")->required();
  command
      .add_option("--device", asked.device,
                  "Where to judge: cpu or cuda (default: as the candidates need)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      .add_option(
          "--baseline", asked.baselines,
          "eager, compiled, compiled-reduce-overhead, compiled-max-autotune, or several, of which "
          "the first decides the outcome; or best: all, of which the one that is hardest to beat "
          "decides")
      ->capture_default_str();
  command.add_option("--against", asked.against, "Judge against this candidate instead of PyTorch");
  command.add_option("--p", asked.threshold, "Speedup that must be exceeded")
      ->capture_default_str();
  command
      .add_option("--threads", asked.threads, "Threads of each side (default: all cores but one)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--precision", asked.precision,
                     "Accept this precision class: float64, float32, tf32, float16, bfloat16");
  command.add_option("--tolerance", asked.tolerance,
                     "error-ratio (default), or allclose:1e-4 for KernelBench's rule");
  command
      .add_option("--weights", asked.weights,
                  "varied (default): they change from block to block; constant: they may be "
                  "prepared once; constructed: and are as the constructor made them")
      ->check(CLI::IsMember({"varied", "constant", "constructed"}));
  command.add_flag("--one-size", asked.one_size,
                   "The candidate need not be right at other sizes than this one");
  AddEffort(&asked, &profile, &sanitize, command);
  command.add_option("--python", asked.python, "Python interpreter that has PyTorch");
  command.add_flag("--correctness-only", asked.effort.correctness_only, "Stop after gate 1")
      ->excludes("--sustained");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.add_flag("--json", json, "One JSON document on stdout: the verdict, or a list of them");
  command.add_flag("--jsonl", jsonl, "Events as JSON lines on stdout: progress, verdict, end")
      ->excludes("--json");
  command.add_flag("--no-save", no_save, "Do not keep the verdict for assay explain");
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  command.add_flag("-v,--verbose", verbose, "Progress as plain lines");
  command.footer(
      "Examples:\n"
      "  assay judge softmax mine.cpp --size small\n"
      "  assay judge KernelBench/level1/23_Softmax.py mine.cpp --set dim=4096\n"
      "  assay judge softmax mine.cpp --size small --p 2 --json\n"
      "  assay judge softmax mine.cpp --against other.cpp\n"
      "  assay judge softmax mine.cu --profile --sanitize memcheck\n\n"
      "Exit codes: 0 every candidate is faster, or correct where that alone was asked for;\n"
      "1 correct, not proven faster; 2 usage; 3 wrong; 4 did not build;\n"
      "5 crashed, timed out or out of memory; 6 foul; 7 unsettled; 8 this machine lacks something; "
      "130 interrupted.");
}

void NewOptions::AddTo(CLI::App& command) {
  problem.AddTo(command);
  command
      .add_option("--form", form,
                  "native (C++), c, python, cuda (launches its kernels itself) or device (kernels "
                  "and launch lines)")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "c", "python", "cuda", "device"}));
  command.add_option("-o,--output", output,
                     "File to write (default: the problem's name); - for stdout");
  command.add_option("--python", python, "Python interpreter that has PyTorch");
  command.add_flag("--force", force, "Overwrite the file");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Examples:\n  assay new softmax --size small -o mine.cpp\n  assay new path/to/problem.py "
      "--form python");
}

void ExplainOptions::AddTo(CLI::App& command) {
  command
      .add_option("VERDICT", verdict,
                  "A verdict's JSON file, the id on its card, or 'last' for the newest")
      ->required();
  command.add_option("-o,--output", output, "Folder to write (default: explain-ID)");
  command.add_option("--python", python, "Python interpreter that has PyTorch");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer("Example:\n  assay explain 3f2a9c01d4e7");
}

void ScoreOptions::AddTo(CLI::App& command) {
  command.add_option(
      "PATH", paths,
      "Verdicts: JSON files, .jsonl files or folders of them (default: all that were "
      "saved)");
  CLI::Option* suite_option = command.add_option(
      "--suite", suite, "Folder with a suite.toml: its problems are those asked for");
  command.add_option("--level", level, "Of the suite, the problems of this level alone")
      ->needs(suite_option)
      ->check(CLI::Range(1, 99));
  command
      .add_option("--problems", problems,
                  "How many problems were asked for; those without a verdict count as not correct")
      ->excludes(suite_option)
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  command
      .add_option("--p", thresholds,
                  "Speedups p of fast_p, such as 1,2 (default: 0,0.5,0.8,1,1.5,2,4)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      .add_option("--k", draws,
                  "Attempts k of pass@k, such as 1,4 (default: 1,5,10 where a problem has several)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--baseline", baseline,
                     "The baseline whose result counts (default: the one that decided)");
  command.add_option("--svg", svg, "Write the fast_p curve as a picture");
  command.add_flag("--json", json, "One JSON document on stdout");
  command.add_flag("--any-machine", any_machine, "Verdicts of several machines in one table");
  command.add_flag("--any-size", any_size, "Several sizes or versions of one problem in one table");
  command.add_flag("--skip-broken", skip_broken, "Score without the files that cannot be read");
  command.footer(
      "Examples:\n"
      "  assay score\n"
      "  assay score run/ --suite problems --level 1\n"
      "  assay score run/*.json --problems 100 --p 1,2 --svg curve.svg\n\n"
      "Exit codes: 0 the scores stand on stdout; 2 the request or a file is wrong.");
}

void ProblemListOptions::AddTo(CLI::App& command) {
  command.add_option("--suite", suite, "A folder with a suite.toml, instead of the installed ones");
  command.add_option("--level", level, "Only problems of this level")->check(CLI::Range(1, 9));
  command.add_option("--mechanism", mechanism, "Only problems of this mechanism, such as fusion");
  command.add_flag("--json", json, "A list as JSON on stdout");
  command.add_flag("--names", names, "Names alone, one a line");
  command.footer("Example:\n  assay problems --level 2 --mechanism fusion");
}

void ProblemShowOptions::AddTo(CLI::App& command) {
  problem.AddTo(command);
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.add_flag("--profile", profile,
                   "Run the reference and say where its time goes, operator by operator");
  command.add_option("--threads", threads, "Threads (default: as many as a judgement gives)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--python", python, "Python interpreter that has PyTorch");
  command.add_flag("--json", json, "One JSON document on stdout");
  command.footer(
      "Examples:\n"
      "  assay problems show softmax --size large\n"
      "  assay problems show problems/level3/vision_transformer.py --size small --profile");
}

void AuditOptions::AddTo(CLI::App& command) {
  command
      .add_option("PROBLEM", problems,
                  "KernelBench-form .py files, names of problems, suites (a folder with a "
                  "suite.toml), or folders of such files, such as a checkout of KernelBench")
      ->required();
  command.add_option("--size", size, "Named size from suite.toml, such as tiny, small or large");
  command
      .add_option("--set", set,
                  "NAME=VALUE: change a module-level constant (repeatable); of several problems "
                  "those that have it")
      ->allow_extra_args(false);
  command.add_option("--precision", precision,
                     "Audit for this precision class: float64, float32, tf32, float16, bfloat16");
  command.add_option("--tolerance", tolerance,
                     "error-ratio (default), or allclose:1e-4 for KernelBench's rule");
  command.add_flag("--ordinary-only", ordinary_only,
                   "The draws of get_inputs() alone, without the adversarial ones");
  command.add_option("--seed", seed, "Seed of every draw (default: a fresh one, in the JSON)");
  command.add_option("--threads", threads, "Threads of each reference")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  command.add_option("--jobs", jobs, "Problems at a time (default: two where there are two cores)")
      ->check(CLI::Range(1, 64));
  command.add_option("--python", python, "Python interpreter that has PyTorch");
  command.add_flag("--json", json, "One JSON document on stdout");
  command.add_flag("--jsonl", jsonl, "One JSON line a problem on stdout, as it ends")
      ->excludes("--json");
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  command.add_flag("-v,--verbose", verbose, "Progress as plain lines");
  command.footer(
      "Examples:\n"
      "  assay audit problems --size tiny\n"
      "  assay audit KernelBench/level2/80_Gemm_Max_Subtract_GELU.py --set batch_size=16\n"
      "  assay audit KernelBench --tolerance allclose:1e-2 --ordinary-only\n\n"
      "Exit codes: 0 no problem is degenerate; 2 usage, or none could be audited; 3 a problem is "
      "degenerate;\n"
      "8 this machine lacks something; 130 interrupted.");
}

void DoctorOptions::AddTo(CLI::App& command) {
  command.add_flag("--quick", quick,
                   "Look for what judging needs, and measure nothing (a second or two)");
  command
      .add_flag("--noise", noise,
                "Measure the noise floor, too: identical programs against each other, on a "
                "quiet machine (two to four minutes)")
      ->excludes("--quick");
  command
      .add_option("--device", device,
                  "cpu: look for no GPU; cuda: one must be there (default: measured where found)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--python", python, "Python interpreter that has PyTorch");
  command.add_flag("--json", json, "One JSON document on stdout");
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  command.footer(
      "Run it once: its ceilings give every later verdict a percentage of the peak. Takes half a\n"
      "minute. Where CUDA shows a GPU, its ceilings are measured, too. A noise floor (--noise) is\n"
      "respected by the speed gate.\n\n"
      "Exit codes: 0 judging works here; 8 something is missing, and the command that mends it is "
      "printed.");
}

void DemoOptions::AddTo(CLI::App& command) {
  command.add_option("NAME", name, "gap, warmup, off-by-one or online-softmax")
      ->required()
      ->check(CLI::IsMember({"gap", "warmup", "off-by-one", "online-softmax"}));
  command.add_option("--python", python, "Python interpreter that has PyTorch");
  command.add_option("--device", device, "cpu or cuda; gap and warmup run on a GPU, too")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.footer(
      "  gap             a naive matrix product and the library, back to back\n"
      "  warmup          the same kernels timed cold, then warmed up\n"
      "  off-by-one      a slip that gate 1 catches, with the column named\n"
      "  online-softmax  1, 3 | 2, 5 in two tiles: one pass and two agree");
}

void WorkerCommandOptions::AddTo(CLI::App& command) {
  command
      .add_option("--device", device, "Judge on cpu or cuda alone (default: as each request needs)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--cores", cores, "Cores of its own, such as 0,1 (default: all)")
      ->delimiter(',')
      ->check(CLI::Range(0, 1023));
  command.add_option("--memory", memory,
                     "What open sessions may take, such as 8G (default: half of what is free)");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Reads requests and writes events as JSON lines (docs/worker.md). It ends with its input, "
      "or by SIGTERM.\n"
      "Example:\n  assay worker < requests.jsonl");
}

void CompletionOptions::AddTo(CLI::App& command) {
  command.add_option("SHELL", shell, "bash, zsh or fish")->required();
  command.footer("Example:\n  source <(assay completion bash)");
}

void ConfigOptions::AddTo(CLI::App& command) {
  command.add_option("ACTION", action, "show")->required()->check(CLI::IsMember({"show"}));
  command.add_flag("--origin", origin, "Say where each value comes from");
  command.footer(
      fmt::format("Defaults of options may stand in {} and in ./{}, by command:\n"
                  "  [judge]\n  threads = 1\n  baseline = \"eager\"\nThe folder's file may set "
                  "baseline, budget, "
                  "quiet, size, threads and verbose alone.",
                  "$XDG_CONFIG_HOME/assay/config.toml (~/.config)", kFolderConfigPath));
}

}  // namespace assay
