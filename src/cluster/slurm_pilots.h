// Pilots as arrays of Slurm jobs. Each job is one pilot, which takes many judgements.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/pilots.h"
#include "cluster/slurm.h"

namespace assay {

struct SlurmPilotTerms {
  int nodes = 1;         // pilots at a time
  std::string script;    // of each job
  double silent_s = 90;  // a job that runs, and whose pilot is silent so long, is replaced
  int rounds_max = 3;    // pilots that end without any verdict are started so often
  std::string logs;      // folder of the jobs' logs
};

class SlurmPilots : public Pilots {
 public:
  // Arguments must outlive this object.
  SlurmPilots(SlurmPilotTerms terms, Slurm& slurm, std::function<int64_t()> now_ns);

  // Finds jobs that an earlier controller submitted.
  Result<std::vector<std::string>> Tend(const PilotDemand& demand,
                                        std::span<const KnownWorker> workers) override;
  void Forgive() override { submitted_ = 0; }
  void End() override;

 private:
  double Now() const { return static_cast<double>(now_ns_()) / 1e9; }
  // True if a running job's pilot was not heard for too long.
  bool IsSilent(const SlurmJob& job, std::span<const KnownWorker> workers);
  // The end of the newest log, for the user; empty: there is none.
  std::string LastWords() const;

  const SlurmPilotTerms terms_;
  Slurm& slurm_;
  const std::function<int64_t()> now_ns_;
  std::map<std::string, double> runs_since_;  // by job
  std::set<std::string> reasons_;             // for waiting, that were told
  std::set<std::string> cancelled_;           // jobs
  int64_t works_ended_ = 0;                   // at the last call
  int64_t submitted_ = 0;                     // jobs since the last verdict
};

}  // namespace assay
