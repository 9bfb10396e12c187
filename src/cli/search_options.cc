#include <CLI/CLI.hpp>

#include "cli/search_command.h"
#include "cli/validators.h"

namespace assay {
namespace {

void AddTerms(AskedTerms* asked, CLI::App& command) {
  command
      .add_option("--baseline", asked->baselines,
                  "The reference to beat, as in assay judge: eager, compiled, best...")
      ->capture_default_str();
  command.add_option("--p", asked->threshold, "Speedup that a result must exceed")
      ->capture_default_str();
  command
      .add_option("--threads", asked->threads, "Threads of each side (default: all cores but one)")
      ->check(Between(1, 4096));
  command.add_option("--timeout", asked->limits.timeout_s, "Seconds that one call may take")
      ->capture_default_str()
      ->check(AboveZero());
  command
      .add_option("--verdict-seconds", asked->effort.speed_budget_s,
                  "Seconds for gate 2 of each candidate; of its first look 15 at most")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--memory", asked->limits.memory, "Memory that a candidate may take")
      ->capture_default_str();
  command.add_option("--python", asked->python, "Python interpreter that has PyTorch");
}

void AddProposer(SearchOptions* options, CLI::App& command) {
  command
      .add_option(
          "--proposer", options->proposer,
          "What writes candidates: tuner varies the //! tune lines of --from; openai:MODEL, "
          "anthropic:MODEL, command:PROGRAM, inbox:FOLDER or replay:FILE answer prompts")
      ->capture_default_str();
  command.add_option("--key-file", options->proposing.key_file,
                     "File with the key of a model's service (default: the environment)");
  command.add_option("--models", options->proposing.models_file,
                     "A table of models of your own, in TOML");
  command.add_option("--record", options->proposing.record_file,
                     "A transcript (.jsonl) to which answers are added, for replay:FILE");
  command.add_option("--provenance", options->proposing.provenance,
                     "Written beside each recorded answer: who answers, under which terms");
  command.add_option("--askers", options->askers, "Answers that are awaited at a time")
      ->capture_default_str()
      ->check(Between(1, 256));
  command.add_option("--form", options->form, "Form of candidates that are asked for")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "device", "python"}));
  command
      .add_option("--port", options->ports,
                  "Of evolve: a verdict on a kernel that was fast at another size or on another "
                  "machine, to begin from; VERDICT, or VERDICT@ARCHIVE")
      ->allow_extra_args(false);
  command.add_option("--prompts", options->prompts,
                     "A folder with templates that take the place of the shipped ones");
  command
      .add_option("--prompt-tokens", options->prompt_tokens, "Length of a prompt, about, at most")
      ->capture_default_str()
      ->check(Between(500, 2'000'000));
  command.add_option("--answer-tokens", options->answer_tokens, "Length of an answer, at most")
      ->capture_default_str()
      ->check(Between(16, 2'000'000));
  command.add_option("--temperature", options->temperature, "Of the model")
      ->capture_default_str()
      ->check(Between(0.0, 2.0));
  command
      .add_option("--chains", options->chains,
                  "Of sample: draws; of refine: chains that know nothing of each other")
      ->capture_default_str()
      ->check(Between(1, 100'000));
  command.add_option("--turns", options->turns, "Of refine: turns of each chain")
      ->capture_default_str()
      ->check(Between(1, 1000));
}

void AddMachines(SearchOptions* options, CLI::App& command) {
  command
      .add_option("--devices", options->devices,
                  "Where to judge: cpu, or GPUs such as cuda:0,cuda:1 (default: where --from runs)")
      ->delimiter(',')
      ->allow_extra_args(false);
  options->cluster.AddTo(command);
}

// A search that is gone on with has the settings that it was begun with.
void RefuseFixed(const CLI::App& command) {
  for (const char* name : {"--size",
                           "--set",
                           "--grad",
                           "--from",
                           "--strategy",
                           "--proposer",
                           "--form",
                           "--prompts",
                           "--prompt-tokens",
                           "--answer-tokens",
                           "--temperature",
                           "--chains",
                           "--turns",
                           "--budget",
                           "--seed",
                           "--finalists",
                           "--width",
                           "--baseline",
                           "--p",
                           "--threads",
                           "--timeout",
                           "--memory",
                           "--verdict-seconds",
                           "--python",
                           "--no-race",
                           "--judge-again",
                           "--port"})
    if (command.get_option(name)->count() > 0)
      throw CLI::ValidationError(name, "it was fixed when the search was begun: leave it out");
}

// Wishes for a search that runs, and what is shown of one.
void AddOutput(SearchOptions* options, CLI::App& command) {
  command
      .add_option("--steer", options->steer,
                  "Record a wish for a search (--resume ID; else the newest) that runs, or will: "
                  "inject IDEA, prune KEY or pin KEY")
      ->expected(2)
      ->type_name("ACTION TEXT");
  command.add_option("--out", options->out, "File for the source of the result");
  command.add_flag("--jsonl", options->jsonl, "Print events as JSON lines");
  command.add_flag("-q,--quiet", options->quiet, "No progress on stderr");
  command.add_flag("-v,--verbose", options->verbose, "Progress as plain lines");
  AddWeakSandboxFlag(command, &options->allow_weak_sandbox);
}

}  // namespace

void SearchOptions::AddTo(CLI::App& command) {
  problem.AddTo(command);
  problem.AddGradTo(command);
  command.get_option("PROBLEM")->required(false);
  command.add_option("--from", from, "The candidate whose //! tune lines the tuner varies");
  command
      .add_option("--strategy", strategies,
                  "How candidates are found: sample, refine, evolve; of the tuner also surrogate "
                  "and exhaustive; for comparisons greedy and no-archive. Several, with commas, "
                  "have the same budget and seed each, and "
                  "are compared")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str("evolve");
  AddProposer(this, command);
  command
      .add_option("--budget", budget,
                  "What may be spent: evals=60,usd=2,tokens=100000,seconds=600, one or several")
      ->capture_default_str();
  command.add_option("--seed", seed, "Seed of the search's own choices (default: a fresh one)");
  command
      .add_option("--finalists", finalists,
                  "Candidates that are judged again at the end: in a new process, on new values, "
                  "at all sizes")
      ->capture_default_str()
      ->check(Between(1, 64));
  command.add_option("--width", width, "Candidates in hand at a time")
      ->capture_default_str()
      ->check(Between(1, 32));
  command.add_flag("--no-race", no_race,
                   "Measure first looks to a decision about --p, also of what cannot be the best");
  command.add_flag("--judge-again", judge_again,
                   "Judge candidates also if an earlier search has judged what they build to");
  AddMachines(this, command);
  AddTerms(&asked, command);
  AddArchiveOption(command, &archive);
  CLI::Option* resumed = command.add_option(
      "--resume", resume, "Go on with a search: its id, or the newest one without an id");
  resumed->expected(0, 1);
  CLI::Option* replayed = command.add_option(
      "--replay", replay,
      "Run a recorded search again on its recorded answers and verdicts, by its id, or the newest "
      "one without an id: does it decide the same? Nothing is asked, judged or recorded");
  replayed->expected(0, 1)->excludes(resumed);
  command.add_option("--verdicts", verdicts,
                     "An archive whose verdicts take the place of judging, by the candidate's "
                     "source. The search is recorded in --archive, or nowhere");
  command.parse_complete_callback([this, resumed, replayed, &command] {
    resumes = resumed->count() > 0;
    if (resumes) RefuseFixed(command);
    replays = replayed->count() > 0;
  });
  AddOutput(this, command);
  command.footer(
      "Every step is recorded before it is done, and its result after it: Ctrl-C, or worse, loses\n"
      "nothing, and --resume goes on with the same run.\n"
      "Examples:\n"
      "  assay search softmax --size small --from kernels/softmax/tunable.cpp --budget evals=60\n"
      "  assay search softmax --size small --from mine.cpp --strategy surrogate --out best.cpp\n"
      "  assay search softmax --size small --strategy refine --proposer openai:MODEL@URL\n"
      "  assay search softmax --size small --grad --from mine.cpp\n"
      "  assay search softmax --size small --from mine.cpp --slurm --nodes 4\n"
      "  assay search --resume\n"
      "  assay search --replay\n\n"
      "Exit codes: 0 a confirmed result; 1 all was tried, and nothing is confirmed as faster; 2 "
      "usage;\n3 a replay differs; 8 this machine lacks something; 9 the budget ended before "
      "anything was confirmed; "
      "130 interrupted.");
}

}  // namespace assay
