#include <CLI/CLI.hpp>

#include "cli/env_command.h"
#include "cli/validators.h"

namespace assay {
namespace {

void AddRewards(EnvOptions* options, CLI::App& command) {
  command
      .add_option("--formula", options->formula,
                  "The reward: fast is 1 if more than --p times the speed is certified, else 0; "
                  "kevin is 0.3 and the ratio of a correct candidate")
      ->capture_default_str()
      ->check(CLI::IsMember({"fast", "kevin"}));
  command.add_option("--p", options->p, "The speedup that fast asks for")
      ->capture_default_str()
      ->check(Between(0.0, 1e6));
  command.add_option("--tie", options->tie, "The reward of a tie, by fast")
      ->capture_default_str()
      ->check(Between(-1e6, 1e6));
  command.add_option("--foul", options->foul, "The reward of a foul")
      ->capture_default_str()
      ->check(Between(-1e6, 1e6));
}

}  // namespace

void EnvOptions::AddTo(CLI::App& command) {
  command.add_option(
      "PROBLEMS", problems,
      "Problems, by name or path: a reset without a problem chooses one by its seed");
  command.add_option("--size", size, "The named size of PROBLEMS");
  command.add_flag("--grad", gradients,
                   "Episodes on problems with their gradients, where a reset does not say "
                   "otherwise: forward and backward are one call");
  command.add_option("--form", form, "The form of candidates")
      ->capture_default_str()
      ->check(CLI::IsMember({"native", "device", "python"}));
  command.add_option("--turns", turns, "Answers of an episode")
      ->capture_default_str()
      ->check(Between(int64_t{1}, int64_t{1000}));
  command.add_option("--prompt-tokens", prompt_tokens, "Tokens that a prompt may have, about")
      ->capture_default_str()
      ->check(Between(int64_t{100}, int64_t{10'000'000}));
  command.add_option("--prompts", prompts, "Folder with templates that replace the shipped ones");
  AddRewards(this, command);
  command.add_option("--baseline", asked.baselines, "The reference to beat, as in assay judge")
      ->capture_default_str();
  command
      .add_option("--budget", asked.effort.speed_budget_s,
                  "Seconds that the speed of a candidate may take to be decided")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--threads", asked.threads, "Threads of each side")->check(Between(1, 4096));
  command.add_option("--timeout", asked.limits.timeout_s, "Seconds that one call may take")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--memory", asked.limits.memory, "Memory that a candidate may take")
      ->capture_default_str();
  command.add_option("--python", asked.python, "Python interpreter that has PyTorch");
  command
      .add_option("--devices", devices,
                  "Where to judge: cpu, or GPUs such as cuda:0,cuda:1 (default: cpu for native)")
      ->delimiter(',');
  CLI::Option* port =
      command.add_option("--http", http, "Serve HTTP on 127.0.0.1 at this port; 0: a free one")
          ->check(Between(0, 65535));
  command
      .add_option("--token-file", token_file,
                  "File with the token that clients must send; made if it is missing")
      ->needs(port);
  AddArchiveOption(command, &archive);
  command.add_flag("--no-save", no_save, "Record neither episodes nor verdicts in the archive");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Requests are JSON objects on stdin, one a line, and each has one event on stdout:\n"
      "  {\"request\": \"reset\", \"problem\": \"softmax\", \"size\": \"tiny\"}\n"
      "  {\"request\": \"step\", \"episode\": \"e1\", \"text\": \"...the model's answer...\"}\n"
      "Example:\n  assay env softmax gelu --size tiny --turns 4\n\n"
      "Exit codes: 0 after a shutdown, or at the end of stdin; 2 usage; 8 this machine lacks\n"
      "something; 130 interrupted.");
}

}  // namespace assay
