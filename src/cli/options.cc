// The options of the subcommands. They stand in few files: CLI11 takes five seconds to compile
// in each file that includes it.
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/config.h"
#include "cli/validators.h"

namespace assay {
namespace {

void AddPython(std::string* python, CLI::App& command) {
  command.add_option("--python", *python, "Python interpreter that has PyTorch");
}

void AddThreadsOfASide(int* threads, CLI::App& command) {
  command.add_option("--threads", *threads, "Threads of each side (default: all cores but one)")
      ->check(Between(1, 4096));
}

void AddProgressFlags(bool* quiet, bool* verbose, CLI::App& command) {
  command.add_flag("-q,--quiet", *quiet, "No progress on stderr");
  command.add_flag("-v,--verbose", *verbose, "Progress as plain lines");
}

}  // namespace

void AddWeakSandboxFlag(CLI::App& command, bool* allowed) {
  command.add_flag(std::string("--") + kAllowWeakSandbox, *allowed,
                   "Go on even if the sandbox's self-test fails: only for code that you trust");
}

void AddArchiveOption(CLI::App& command, std::string* archive) {
  command.add_option("--archive", *archive,
                     "The archive's file, or the URL of a PostgreSQL database (default: "
                     "$XDG_DATA_HOME/assay/archive.sqlite, below ~/.local/share where that is "
                     "unset)");
}

void ProblemOptions::AddTo(CLI::App& command) {
  command
      .add_option(
          "PROBLEM", problem,
          "A .py file in KernelBench's form, or the name of a problem that comes with Assay")
      ->required();
  command.add_option("--size", size, "Named size from suite.toml, such as tiny, small or large");
  command
      .add_option("--set", set,
                  "NAME=VALUE: change a module-level constant of the problem (repeatable)")
      ->allow_extra_args(false);
}

void ProblemOptions::AddGradTo(CLI::App& command) {
  command.add_flag("--grad", gradients,
                   "The problem with its gradients: forward and backward are one call "
                   "(docs/problems.md)");
}

namespace {

// Limits, effort and tools.
void AddEffort(AskedTerms* asked, std::string* sanitize, CLI::App& command) {
  command.add_flag("--no-replay", asked->no_replay,
                   "On a GPU: launch timed calls one by one, and count the launching");
  command.add_flag("--probe", asked->probe,
                   "On the processor: after the verdict on native code, look at page faults, "
                   "counters, and the time at half the size and on one thread");
  command.add_flag("--profile", asked->profile,
                   "On a GPU: after the verdict, read counters of one call with Nsight Compute");
  command
      .add_option("--sanitize", *sanitize,
                  "On a GPU: after the verdict, have Compute Sanitizer look at one call: memcheck, "
                  "racecheck, initcheck or synccheck")
      ->check(CLI::IsMember({"memcheck", "racecheck", "initcheck", "synccheck"}));
  command.add_option("--seed", asked->seed,
                     "Seed of all inputs (default: a fresh one, on the card)");
  command.add_option("--timeout", asked->limits.timeout_s, "Seconds that one call may take")
      ->capture_default_str()
      ->check(AboveZero());
  command
      .add_option("--build-timeout", asked->limits.build_timeout_s,
                  "Seconds that building may take: a compiler, or a Python file's import "
                  "(default: 60, or 300 where PyTorch compiles an extension)")
      ->check(AboveZero());
  command.add_option("--memory", asked->limits.memory, "Memory that a candidate may take")
      ->capture_default_str();
  command
      .add_option("--budget", asked->effort.speed_budget_s,
                  "Seconds for gate 2, speed, of each candidate against each baseline")
      ->capture_default_str()
      ->check(AboveZero());
  command
      .add_option(
          "--sustained", asked->effort.sustained_s,
          "After the verdict, run each side for this many seconds without a pause, and show what "
          "a call takes in the end")
      ->check(Between(0.5, 600.0));
}

// Options of gate 1: how outputs are compared, and on which values.
void AddCorrectness(AskedTerms& asked, CLI::App& command) {
  command.add_option(
      "--precision", asked.precision,
      "Precision that is enough: float64, float32, tf32, float16 or bfloat16 (default: the "
      "problem's own)");
  command.add_option("--tolerance", asked.tolerance,
                     "How outputs are compared: error-ratio (default), or allclose:1e-4 for "
                     "KernelBench's rule");
  command
      .add_option("--weights", asked.weights,
                  "Weights of timed calls. varied (default): each call has its own. constant: "
                  "a candidate may prepare them once. constructed: the same, with the values that "
                  "the constructor made")
      ->check(CLI::IsMember({"varied", "constant", "constructed"}));
  command
      .add_option("--state", asked.state,
                  "Whether what forward changes in its module, such as running statistics, is "
                  "compared: compared (default), in candidates in Python, or ignored")
      ->check(CLI::IsMember({"compared", "ignored"}));
  command
      .add_option(
          "--special-values", asked.special_values,
          "If outputs differ where inputs are NaN or infinite: noted, or required, which "
          "makes the candidate wrong (default: the problem's; else required where the reference "
          "asks which elements are NaN or infinite)")
      ->check(CLI::IsMember({"noted", "required"}));
  command.add_option("--skip-draws", asked.skip_draws,
                     "Kinds of draws to leave out, with commas, such as ties,huge-scale "
                     "(docs/problems.md lists them)");
  command
      .add_option("--ragged", asked.ragged,
                  "NAME=LO:HI: check correctness at other values of this constant of the problem, "
                  "too (repeatable)")
      ->allow_extra_args(false);
  command
      .add_flag("--one-size", asked.one_size,
                "Check this size alone: the candidate may be wrong at others")
      ->excludes("--ragged");
}

}  // namespace

void JudgeOptions::AddTo(CLI::App& command) {
  problem.AddTo(command);
  problem.AddGradTo(command);
  command
      .add_option("CANDIDATE", candidates,
                  "Candidates: .cpp, .c, .cu or .py files, answers of models (.txt, .md), folders")
      ->required();
  command
      .add_option("--device", asked.device,
                  "Where to judge: cpu or cuda (default: as the candidates need)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command
      .add_option("--baseline", asked.baselines,
                  "The reference to beat: eager, compiled, compiled-reduce-overhead or "
                  "compiled-max-autotune. Several, with commas: the first decides. best: all are "
                  "measured, and the hardest to beat decides")
      ->capture_default_str();
  command.add_option("--against", asked.against, "Judge against this candidate instead of PyTorch");
  command.add_option("--p", asked.threshold, "Speedup that the candidate must exceed")
      ->capture_default_str();
  AddThreadsOfASide(&asked.threads, command);
  AddCorrectness(asked, command);
  AddEffort(&asked, &sanitize, command);
  AddPython(&asked.python, command);
  command
      .add_flag("--correctness-only", asked.effort.correctness_only,
                "Stop after gate 1, correctness")
      ->excludes("--sustained");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.add_flag("--json", json, "One JSON document on stdout: the verdict, or a list of them");
  command.add_flag("--jsonl", jsonl, "Events as JSON lines on stdout: progress, verdict, end")
      ->excludes("--json");
  command.add_flag("--no-save", no_save,
                   "Do not keep the verdict for assay explain, nor record it in the archive");
  AddArchiveOption(command, &archive);
  AddProgressFlags(&quiet, &verbose, command);
  command.footer(
      "Examples:\n"
      "  assay judge softmax mine.cpp --size small\n"
      "  assay judge KernelBench/level1/23_Softmax.py mine.cpp --set dim=4096\n"
      "  assay judge softmax mine.cpp --size small --p 2 --json\n"
      "  assay judge softmax mine.cpp --against other.cpp\n"
      "  assay judge softmax mine.cu --profile --sanitize memcheck\n\n"
      "Exit codes: 0 every candidate is faster, or correct where that alone was asked for;\n"
      "1 correct, not proven faster; 2 usage; 3 wrong; 4 did not build;\n"
      "5 crashed, timed out or out of memory; 6 foul: caught cheating; 7 unsettled;\n"
      "8 this machine lacks something; 130 interrupted.");
}

void NewOptions::AddTo(CLI::App& command) {
  problem.AddTo(command);
  problem.AddGradTo(command);
  command
      .add_option("--form", form,
                  "native (C++), c, python, cuda (launches its kernels itself) or device (kernels "
                  "and launch lines)")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "c", "python", "cuda", "device"}));
  command.add_option("-o,--output", output,
                     "File to write (default: the problem's name); - for stdout");
  AddPython(&python, command);
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
  AddPython(&python, command);
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer("Example:\n  assay explain 3f2a9c01d4e7");
}

void ScoreOptions::AddTo(CLI::App& command) {
  command.add_option(
      "PATH", paths,
      "Verdicts: JSON files, .jsonl files or folders of them (default: all that were "
      "saved)");
  CLI::Option* suite_option = command.add_option(
      "--suite", suite, "Folder with a suite.toml: score over all of its problems");
  command.add_option("--level", level, "Only problems of this level of the suite")
      ->needs(suite_option)
      ->check(Between(1, 99));
  command
      .add_option("--problems", problems,
                  "How many problems were asked for; those without a verdict count as not correct")
      ->excludes(suite_option)
      ->check(Between(int64_t{1}, int64_t{1000000}));
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
                     "Count the results against this baseline (default: the one that decided)");
  command.add_option("--svg", svg, "Write the fast_p curve as a picture");
  command.add_option("--learning-svg", learning_svg,
                     "Write what is reached after each round of attempts as a picture");
  command.add_option("--html", html, "Write the scores as a page");
  command.add_flag("--json", json, "One JSON document on stdout");
  command.add_flag("--any-machine", any_machine, "Allow verdicts of several machines in one table");
  command.add_flag("--any-size", any_size,
                   "Allow several sizes or versions of one problem in one table");
  command.add_flag("--skip-broken", skip_broken, "Leave out files that cannot be read");
  command.footer(
      "Examples:\n"
      "  assay score\n"
      "  assay score run/ --suite problems --level 1\n"
      "  assay score run/*.json --problems 100 --p 1,2 --html score.html\n\n"
      "Exit codes: 0 the scores are printed; 2 the request or a file is wrong.");
}

void ProblemListOptions::AddTo(CLI::App& command) {
  command.add_option("--suite", suite, "A folder with a suite.toml, instead of the installed ones");
  command.add_option("--level", level, "Only problems of this level")->check(Between(1, 9));
  command.add_option("--mechanism", mechanism, "Only problems of this mechanism, such as fusion");
  command.add_flag("--json", json, "A list as JSON on stdout");
  command.add_flag("--names", names, "Names alone, one a line");
  command.footer("Example:\n  assay problems --level 2 --mechanism fusion");
}

void ProblemShowOptions::AddTo(CLI::App& command) {
  problem.AddTo(command);
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.add_flag("--profile", profile,
                   "Run the reference, and show where its time goes, operator by operator");
  command.add_option("--threads", threads, "Threads (default: as many as a judgement gives)")
      ->check(Between(1, 4096));
  AddPython(&python, command);
  command.add_flag("--json", json, "One JSON document on stdout");
  command.footer(
      "Examples:\n"
      "  assay problems show softmax --size large\n"
      "  assay problems show problems/level3/vision_transformer.py --size small --profile");
}

void AuditOptions::AddTo(CLI::App& command) {
  command
      .add_option("PROBLEM", problems,
                  ".py files in KernelBench's form, names of problems, suites (a folder with a "
                  "suite.toml), or folders of such files, such as a checkout of KernelBench")
      ->required();
  command.add_option("--size", size, "Named size from suite.toml, such as tiny, small or large");
  command
      .add_option(
          "--set", set,
          "NAME=VALUE: change a module-level constant (repeatable); problems without it stay as "
          "they are")
      ->allow_extra_args(false);
  command.add_option(
      "--precision", precision,
      "Audit for this precision: float64, float32, tf32, float16 or bfloat16 (default: the "
      "problem's own)");
  command.add_option("--tolerance", tolerance,
                     "How outputs are compared: error-ratio (default), or allclose:1e-4 for "
                     "KernelBench's rule");
  command.add_flag("--ordinary-only", ordinary_only,
                   "Use the inputs of get_inputs() alone, without adversarial ones");
  command.add_option("--seed", seed, "Seed of all inputs (default: a fresh one, in the JSON)");
  command.add_option("--threads", threads, "Threads of each reference")
      ->capture_default_str()
      ->check(Between(1, 4096));
  command
      .add_option("--jobs", jobs,
                  "Problems audited at a time (default: two where there are two cores)")
      ->check(Between(1, 64));
  AddPython(&python, command);
  command.add_flag("--json", json, "One JSON document on stdout");
  command.add_flag("--jsonl", jsonl, "A JSON line for each problem on stdout, as it ends")
      ->excludes("--json");
  AddProgressFlags(&quiet, &verbose, command);
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
                   "Check that judging works here, and measure nothing (a second or two)");
  command
      .add_flag("--noise", noise,
                "Measure the noise floor, too: identical programs against each other, on a "
                "quiet machine (two to four minutes)")
      ->excludes("--quick");
  command
      .add_option("--device", device,
                  "cpu: ignore GPUs; cuda: require one (default: measure a GPU where there is one)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  AddPython(&python, command);
  command.add_flag("--json", json, "One JSON document on stdout");
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  command.footer(
      "Run it once; it takes half a minute. Later verdicts then say which percentage of this\n"
      "machine's peak a candidate reaches, and of a GPU's where CUDA shows one. The speed gate\n"
      "never goes below a noise floor that --noise has measured.\n\n"
      "Exit codes: 0 judging works here; 8 something is missing: the command that adds it is "
      "printed.");
}

void DemoOptions::AddTo(CLI::App& command) {
  command.add_option("NAME", name, "gap, warmup, off-by-one or online-softmax")
      ->required()
      ->check(CLI::IsMember({"gap", "warmup", "off-by-one", "online-softmax"}));
  AddPython(&python, command);
  command.add_option("--device", device, "cpu or cuda; gap and warmup run on a GPU, too")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.footer(
      "  gap             a naive matrix product and the library, back to back\n"
      "  warmup          the same kernels timed cold, then warmed up\n"
      "  off-by-one      a slip that gate 1 catches, with the column named\n"
      "  online-softmax  softmax of 1, 3 | 2, 5 in two tiles: one pass agrees with two");
}

namespace {

// Adds the flags with which `assay ladder` judges nothing.
void AddLadderPapers(LadderOptions* options, CLI::App& command) {
  CLI::Option* readme = command.add_flag(
      "--readme", options->readme,
      "Judge nothing: write the READMEs' tables and charts from the committed raw results");
  CLI::Option* check =
      command
          .add_flag(
              "--check", options->check,
              "Judge nothing: exit 1 if a README's table or chart differs from the raw results")
          ->excludes(readme);
  command
      .add_flag("--recorded", options->recorded,
                "Judge nothing: show the newest rows of --out, or of the committed raw results")
      ->excludes(readme)
      ->excludes(check);
}

}  // namespace

void LadderOptions::AddTo(CLI::App& command) {
  command
      .add_option("DIR", path,
                  "A folder with a ladder.toml, a folder of such folders, or one ladder*.toml")
      ->required();
  command.add_option("--only", only, "Numbers of rungs, such as 03,05:08 (default: all)");
  command
      .add_option("--device", device,
                  "Ladders for cpu or cuda alone (default: for the GPU where there is one)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  CLI::Option* sizes =
      command.add_flag("--all-sizes", all_sizes, "Every size of the ladder (default: its first)");
  command.add_option("--set", set, "NAME=VALUE: change a constant of the first size (repeatable)")
      ->allow_extra_args(false)
      ->excludes(sizes);
  command.add_option("--out", out,
                     "Add each verdict to this .jsonl file; rungs that stand there are not judged "
                     "again");
  command.add_flag("--again", again, "Judge the rungs that stand in --out, too");
  command.add_option("--minutes", minutes, "Begin no rung after so many minutes")
      ->check(AboveZero());
  command.add_option("--chart", chart, "Write the chart of the first size as a picture (SVG)");
  AddLadderPapers(this, command);
  AddThreadsOfASide(&asked.threads, command);
  command
      .add_option("--budget", asked.effort.speed_budget_s,
                  "Seconds for gate 2, a rung and baseline")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_flag("--correctness-only", asked.effort.correctness_only, "Stop after gate 1");
  AddPython(&asked.python, command);
  command.add_flag("--no-save", no_save, "Do not keep the verdicts for assay explain");
  AddProgressFlags(&quiet, &verbose, command);
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Examples:\n"
      "  assay ladder kernels/sgemm-cpu --only 01:03 --set ROWS=256 --set INNER=256 --set "
      "COLUMNS=256\n"
      "  assay ladder kernels/sgemm-gpu --out rows.jsonl --minutes 9 --chart sgemm.svg\n"
      "  assay ladder kernels --check\n\n"
      "Exit codes: 0 every rung is correct, however fast; else the gravest of: 3 wrong; 4 did not "
      "build;\n"
      "5 crashed, timed out or out of memory; 6 foul; 9 the minutes ended with rungs left; 2 "
      "usage;\n"
      "8 this machine lacks something; 130 interrupted. --check: 1 a README differs.");
}

void SassOptions::AddTo(CLI::App& command) {
  command.add_option("FILE", file, "Kernels in the device form: a .cu file with launch lines")
      ->required();
  command.add_option("--problem", problem.problem,
                     "Their problem: a .py file or a name (default: that of the ladder in whose "
                     "folder the file is a rung)");
  command.add_option("--size", problem.size, "Named size from suite.toml")->needs("--problem");
  command
      .add_option("--set", problem.set,
                  "NAME=VALUE: change a constant of the problem, or of the ladder's first size "
                  "(repeatable)")
      ->allow_extra_args(false);
  command.add_option("--architecture", architecture,
                     "Compile for this GPU (default: the one here, or else sm_90a)");
  command.add_flag("--whole", whole, "Show the whole kernel, not its hot loop alone");
  AddPython(&python, command);
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Examples:\n"
      "  assay sass kernels/hgemm-hopper/07_specialised.cu\n"
      "  assay sass mine.cu --problem softmax --size small\n\n"
      "Exit codes: 0 shown; 2 usage; 4 it does not build; 8 this machine lacks something, such as "
      "nvdisasm.");
}

void CompletionOptions::AddTo(CLI::App& command) {
  command.add_option("SHELL", shell, "bash, zsh or fish")->required();
  command.footer("Example:\n  source <(assay completion bash)");
}

void ConfigOptions::AddTo(CLI::App& command) {
  command.add_option("ACTION", action, "show")->required()->check(CLI::IsMember({"show"}));
  command.add_flag("--origin", origin, "Say where each value comes from");
  command.footer(
      fmt::format("Defaults of options come from {} and from ./{}, by command:\n"
                  "  [judge]\n  threads = 1\n  baseline = \"eager\"\nThe folder's file may set "
                  "only baseline, budget, quiet, size, threads and verbose.",
                  "$XDG_CONFIG_HOME/assay/config.toml (below ~/.config where that is unset)",
                  kFolderConfigPath));
}

}  // namespace assay
