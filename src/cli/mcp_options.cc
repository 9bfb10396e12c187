#include <CLI/CLI.hpp>

#include "cli/mcp_command.h"
#include "cli/validators.h"

namespace assay {

void McpOptions::AddTo(CLI::App& command) {
  command
      .add_option("--calls", budget.calls,
                  "Calls that judge, check, compare by measuring, or profile")
      ->capture_default_str()
      ->check(Between(int64_t{0}, int64_t{1'000'000}));
  command
      .add_option("--seconds", budget.seconds, "Seconds of work that all calls together may take")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--job-seconds", budget.job_seconds, "Seconds that one call may take")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--waiting", budget.waiting_max, "Calls that may wait for their turn")
      ->capture_default_str()
      ->check(Between(int64_t{1}, int64_t{1000}));
  command.add_option("--session", session,
                     "Name under which the budget counts on, from server to server (default: a "
                     "new budget for each)");
  command.add_option("--device", device,
                     "Where to judge: cpu, or a GPU such as cuda:0 (default: the GPU, if there is "
                     "one)");
  command.add_option("--baseline", asked.baselines, "The reference to beat, as in assay judge")
      ->capture_default_str();
  command
      .add_option("--budget", asked.effort.speed_budget_s,
                  "Seconds that the speed of a candidate may take to be decided, if the call does "
                  "not say")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--threads", asked.threads, "Threads of each side")->check(Between(1, 4096));
  command
      .add_option("--timeout", asked.limits.timeout_s, "Seconds that one call of a kernel may take")
      ->capture_default_str()
      ->check(AboveZero());
  command.add_option("--memory", asked.limits.memory, "Memory that a candidate may take")
      ->capture_default_str();
  command.add_option("--python", asked.python, "Python interpreter that has PyTorch");
  AddArchiveOption(command, &archive);
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "A program that drives a language model starts this one, and talks to it on stdin and "
      "stdout\n"
      "(docs/mcp.md). Tools: problem_list problem_get kernel_check kernel_judge job_status "
      "compare\n"
      "profile explain. Revisions of the Model Context Protocol: 2024-11-05 to 2025-11-25, "
      "2026-07-28.\n"
      "Example, as a program's settings have it:\n"
      "  {\"mcpServers\": {\"assay\": {\"command\": \"assay\", \"args\": [\"mcp\", \"--calls\", "
      "\"40\"]}}}\n\n"
      "Exit codes: 0 at the end of stdin; 2 usage; 8 this machine lacks something; 130 "
      "interrupted.");
}

}  // namespace assay
