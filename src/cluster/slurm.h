// Slurm by its commands: sbatch, squeue, scancel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/commands.h"

namespace assay {

struct SlurmTerms {
  std::string name;                                  // of the jobs: by it they are found again
  std::string partition = {}, gres = {}, time = {};  // empty: Slurm's default
  std::string logs = {};                             // folder
  double seconds_max = 20;                           // of one command
};

struct SlurmJob {
  std::string id;     // "12_3"
  std::string state;  // "PENDING", "RUNNING"...
  std::string node;
  std::string reason;  // why it waits
  bool IsAlive() const;
};

class Slurm {
 public:
  Slurm(SlurmTerms terms, Commands& commands) : terms_(std::move(terms)), commands_(commands) {}

  // Submits an array of `count` jobs that run `script`. Returns the array's id. Errors: kUsage
  // (Slurm refuses the request; its words are quoted), kEnvironment.
  Result<std::string> Submit(int count, const std::string& script);
  // Those of this name that wait or run. Errors: kEnvironment.
  Result<std::vector<SlurmJob>> Jobs();
  Result<void> Cancel(const std::vector<std::string>& ids);
  Result<void> CancelAll();

 private:
  Result<std::string> Run(const std::vector<std::string>& words, const std::string& input = "");

  const SlurmTerms terms_;
  Commands& commands_;
};

// Parses squeue's lines; lines of another form are passed over. Pure.
std::vector<SlurmJob> ParseJobs(const std::string& text);
// Returns the seconds of a time limit: "30", "30:00", "2:00:00", "1-12", "1-12:30", "1-12:30:00".
// Errors: kUsage.
Result<double> ParseSlurmTime(const std::string& text);

}  // namespace assay
