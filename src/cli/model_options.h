// The options of `assay model`.
#pragma once

#include "cli/options.h"

namespace assay {

struct ModelOptions {
  std::string path;  // a .toml file, or a folder with one for each device
  std::string device, size, only, baseline;
  std::vector<std::string> set;  // NAME=VALUE, as typed
  std::string chart, write;      // a picture, and a folder for the candidates
  int rounds = 24;               // of the parts' times; 0: they are not measured
  AskedTerms asked;              // but for what the manifest says
  bool json = false, parts_only = false, compose_only = false;
  bool whole = false;  // the model with all kernels alone is judged
  bool quiet = false, verbose = false, no_save = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

int RunModel(const ModelOptions& options);

}  // namespace assay
