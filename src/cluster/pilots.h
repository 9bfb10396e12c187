// The seam for pilots that a controller starts: by Slurm, by ssh.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "queue/work_queue.h"

namespace assay {

class Pilots {
 public:
  virtual ~Pilots() = default;
  // Starts what is missing for so many works that are left; called every few seconds. `workers`: as
  // the queue knows them. Returns lines for the user. Errors: kUsage (they can never start),
  // kEnvironment (they could not be looked after this time; it may be tried again).
  virtual Result<std::vector<std::string>> Tend(int64_t works_left,
                                                std::span<const KnownWorker> workers) = 0;
  // Ends all of them.
  virtual void End() = 0;
};

}  // namespace assay
