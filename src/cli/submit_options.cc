#include <CLI/CLI.hpp>

#include "cli/submit_command.h"

namespace assay {
namespace {

void AddTokenFile(std::string* token_file, CLI::App& command) {
  command.add_option("--token-file", *token_file,
                     "File with your token for the server (default: $ASSAY_TOKEN)");
}

void AddProgressFlags(bool* quiet, bool* verbose, CLI::App& command) {
  command.add_flag("-q,--quiet", *quiet, "No progress on stderr");
  command.add_flag("-v,--verbose", *verbose, "Progress as plain lines");
}

}  // namespace

void SubmitOptions::AddTo(CLI::App& command) {
  CLI::Option* name =
      command.add_option("PROBLEM", problem.problem, "The name of a problem of the server");
  CLI::Option* file =
      command.add_option("CANDIDATE", candidate, "The candidate: a .cpp, .c, .cu or .py file");
  command.add_option("--server", server, "The server's URL, such as https://assay.example.org")
      ->required();
  AddTokenFile(&token_file, command);
  command.add_option("--size", problem.size,
                     "Named size of the problem, such as tiny, small or large");
  command
      .add_option("--set", problem.set,
                  "NAME=VALUE: change a module-level constant of the problem (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--against", against,
                     "Judge against the candidate of this verdict of the server, by its id");
  command.add_flag("--no-wait", no_wait, "Tell the job's handle, and do not wait for the verdict");
  CLI::Option* handle = command.add_option("--status", status, "Show the job with this handle");
  handle->excludes(name)->excludes(file);
  command.add_option("--cancel", cancel, "Cancel the job with this handle")
      ->excludes(name)
      ->excludes(file)
      ->excludes(handle);
  command.add_flag("--json", json, "One JSON document on stdout: the verdict, or else the job");
  AddProgressFlags(&quiet, &verbose, command);
  command.footer(
      "Ctrl-C leaves the job to the server, and tells its handle.\n"
      "Examples:\n"
      "  assay submit softmax mine.cpp --size small --server https://assay.example.org "
      "--token-file token\n"
      "  assay submit --status 17 --server https://assay.example.org\n\n"
      "Exit codes: those of assay judge by the verdict; 0 also with --no-wait, --status of a job "
      "without an\nend, and --cancel; 2 the server refuses it; 8 no verdict: the server is away, "
      "or "
      "the job failed\nthere; 130 interrupted, or the job was cancelled.");
}

void RejudgeOptions::AddTo(CLI::App& command) {
  command.add_option("URL", url, "A verdict on a server: the URL of its page, or of its bundle")
      ->required();
  AddTokenFile(&token_file, command);
  command
      .add_option("--device", device,
                  "Where to judge: cpu or cuda (default: as the candidate needs)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--python", python, "Python interpreter that has PyTorch");
  command.add_flag("--json", json,
                   "One JSON document on stdout: whether they agree, and the verdict made here");
  command.add_flag("--no-save", no_save,
                   "Do not keep the verdict for assay explain, nor record it in the archive");
  AddArchiveOption(command, &archive);
  AddProgressFlags(&quiet, &verbose, command);
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Fetches the problem, the candidate and the terms of the verdict, checks their hashes, "
      "judges "
      "the same\non this machine, and says whether the two verdicts agree: the same outcome, and "
      "intervals of the\nspeedup that overlap.\n"
      "Example:\n  assay rejudge https://assay.example.org/verdicts/3f2a9c01d4e7\n\n"
      "Exit codes: 0 they agree; 1 they differ; 7 one of them is unsettled; 2 usage, or the bundle "
      "is not\nof this verdict; 8 this machine lacks something; 130 interrupted.");
}

}  // namespace assay
