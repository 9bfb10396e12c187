// assay mine: torch.compile's kernels as judged candidates (docs/mine.md).
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace assay {

struct MineOptions {
  std::vector<std::string> problems;  // files, names, and folders of them
  std::string output = "mined";       // folder
  std::string size;
  std::vector<std::string> set;    // NAME=VALUE, as typed
  std::string device;              // "cpu", "cuda"; empty: the GPU where there is one
  std::vector<std::string> modes;  // of torch.compile; empty: all
  double compile_timeout_s = 600;
  RunOptions run;  // terms of the judgement alone
  bool again = false;

  void AddTo(CLI::App& command);
};

int RunMine(const MineOptions& options);

}  // namespace assay
