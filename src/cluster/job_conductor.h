// Has a server's jobs judged by the pilots of a queue.
//
// Theory of operation. A job is taken from the server, under a lease as a runner has it, once a
// pilot is free for it. So jobs wait where accounts take turns, and no lease runs while Slurm's own
// queue is long. Each lease is a run of one work in the queue: it can be cancelled alone. The lease
// and the work are kept in a file before the work is queued; a process that follows on one that was
// killed goes on with them, and each job is judged once. Leases are renewed here, since a pilot
// knows of its work alone. If the work fails, the job goes back to the server's queue.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "base/result.h"
#include "cluster/supervisor.h"
#include "queue/work_queue.h"
#include "serve/given_job.h"
#include "serve/hall.h"
#include "serve/instant.h"

namespace assay {

struct JobConductorTerms {
  std::string run;               // begins the names of its runs in the queue
  std::string runner, device;    // as the server knows this; "cpu" or "cuda"
  std::string version;           // of Assay
  std::filesystem::path folder;  // for files of jobs in hand
  SupervisorTerms supervisor = {};
  int64_t renew_ms = 15'000;
  int64_t forgive_ms = 300'000;  // after pilots that failed none is started for so long
};

class JobConductor {
 public:
  using Changed = std::function<void(int64_t job)>;
  // `pilots` may be null: somebody else starts them. `changed` hears of jobs while the hall's mutex
  // is held. All arguments must outlive this object.
  JobConductor(Hall& hall, WorkQueue& queue, Pilots* pilots, JobConductorTerms terms,
               SupervisorEvents events, Changed changed, std::function<Instant()> now = InstantNow);

  // Reads the files of jobs that an earlier process had in hand.
  Result<void> Open();
  // Ends jobs whose works have ended, takes new ones, looks after pilots; called several times a
  // second, without the hall's mutex. After an error the next call may succeed.
  Result<void> Look();
  // Ends the pilots, and gives the jobs in hand back.
  void End();

 private:
  struct Held {
    std::string lease, request;
    bool is_queued = false, is_told = false;
    int64_t renewed_ms = 0;
  };
  std::string RunOf(int64_t job, const Held& held) const;
  std::filesystem::path FileOf(int64_t job) const;
  Result<void> QueueWorks();
  // The job's work has ended: so does the job. False: it has not.
  Result<bool> EndIfJudged(int64_t job, const Held& held);
  Result<void> EndWithError(int64_t job, const Held& held, const RunnerError& error);
  Result<void> EndJudged();
  Result<void> Renew();
  Result<void> Tend();
  Result<void> TakeJobs();
  // The runner whose place the pilots take.
  KnownRunner Facts() const;
  // Pilots start when jobs wait: their runner is there all the time.
  Result<void> TellItIsThere();
  Result<void> Hold(const GivenJob& given);
  void Drop(int64_t job);

  Hall& hall_;
  WorkQueue& queue_;
  const JobConductorTerms terms_;
  const Changed changed_;
  const std::function<Instant()> now_;
  Supervisor supervisor_;
  std::map<int64_t, Held> held_;  // by job
  int64_t ended_ = 0;             // works
  int64_t told_ms_ = -1;          // that the runner is there; negative: never
  int64_t failed_since_ms_ = 0;   // pilots; 0: they have not
};

}  // namespace assay
