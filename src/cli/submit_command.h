// Commands that talk to an assay serve: submit, rejudge, and the runner of assay worker.
#pragma once

#include <string>

#include "cli/options.h"

namespace assay {

struct SubmitOptions {
  ProblemOptions problem;  // by its name on the server
  std::string candidate, against;
  std::string server, token_file;
  std::string cancel, status;  // handles of jobs
  bool no_wait = false, json = false, quiet = false, verbose = false;

  void AddTo(CLI::App& command);
};

struct RejudgeOptions {
  std::string url;  // of a verdict
  std::string token_file, device, python, archive;
  bool json = false, quiet = false, verbose = false, no_save = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

int RunSubmit(const SubmitOptions& options);
int RunRejudge(const RejudgeOptions& options);
int RunRunner(const WorkerCommandOptions& options);

}  // namespace assay
