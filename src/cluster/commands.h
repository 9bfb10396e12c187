// The seam for programs of the cluster (sbatch, squeue, scancel), and for tests of what uses them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace assay {

struct CommandAnswer {
  int exit_code = 0;
  std::string output, errors;
};

class Commands {
 public:
  virtual ~Commands() = default;
  // Runs a program, found as a shell finds it, with `input` on its stdin. Errors (kEnvironment): it
  // is not there, was killed, or does not end within `seconds_max`; it is killed then.
  virtual Result<CommandAnswer> Run(const std::vector<std::string>& words, const std::string& input,
                                    double seconds_max) = 0;
};

class RealCommands : public Commands {
 public:
  Result<CommandAnswer> Run(const std::vector<std::string>& words, const std::string& input,
                            double seconds_max) override;
};

}  // namespace assay
