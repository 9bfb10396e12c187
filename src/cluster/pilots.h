// The seam for pilots that a controller starts: by Slurm, by ssh.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "queue/work_queue.h"

namespace assay {

struct PilotDemand {
  int64_t works_left = 0;
  int64_t works_ended = 0;  // so far: a rise shows that pilots can judge
};

class Pilots {
 public:
  virtual ~Pilots() = default;
  // Starts what is missing for the works that are left; called every few seconds. `workers`: as the
  // queue knows them. Returns lines for the user. Errors: kUsage (they can never start),
  // kEnvironment (they could not be looked after this time; it may be tried again).
  virtual Result<std::vector<std::string>> Tend(const PilotDemand& demand,
                                                std::span<const KnownWorker> workers) = 0;
  // Forgets what failed: pilots are started again.
  virtual void Forgive() {}
  // Ends all of them.
  virtual void End() = 0;
};

}  // namespace assay
