// assay env: episodes for training, on JSON lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"

namespace assay {

struct EnvOptions {
  std::vector<std::string> problems;  // that a reset without a problem chooses from
  std::string size, form = "native", formula = "fast", prompts;
  bool gradients = false;  // of each episode whose reset does not say
  double p = 1, tie = 0, foul = -1;
  int64_t turns = 4, prompt_tokens = 16'000;
  std::vector<std::string> devices;  // empty: the CPU; of device and Python forms, as found
  AskedTerms asked;                  // but for the problem and the device
  int http = -1;                     // a port, 0 for any; -1: stdin and stdout
  std::string token_file;            // of http
  std::string archive;               // its file; empty: the default
  bool no_save = false;              // nothing is recorded
  bool allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

int RunEnv(const EnvOptions& options);

}  // namespace assay
