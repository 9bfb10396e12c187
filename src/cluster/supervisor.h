// Looks after the workers of a queue for a controller: silent ones, odd nodes, missing pilots, and
// a queue that cannot be used for a while.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "cluster/pilots.h"
#include "queue/work_queue.h"

namespace assay {

struct SupervisorTerms {
  double tend_s = 5;               // between two looks at workers and pilots
  double trouble_max_s = 600;      // the queue cannot be used for so long: the run ends
  double no_worker_notice_s = 60;  // no worker was heard for so long: the user is told
};

struct SupervisorEvents {
  std::function<void(const std::string&)> notice = [](const std::string&) {};
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

class Supervisor {
 public:
  // `pilots` may be null: somebody else starts them. All arguments must outlive this object.
  Supervisor(WorkQueue& queue, Pilots* pilots, SupervisorTerms terms, SupervisorEvents events);
  ~Supervisor() { End(); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // If it is time: takes works from silent workers, drains odd nodes, and starts missing pilots.
  // Errors: as Pilots::Tend.
  Result<void> Tend(const PilotDemand& demand);
  // Another look at a call of the queue that failed: waits, or returns its error after too long.
  Result<void> Bear(const Result<void>& done, StopToken stop);
  // Pilots that failed are started again.
  void Forgive();
  // Ends the pilots.
  void End();
  // As the queue knew them at the last look.
  const std::vector<KnownWorker>& workers() const { return workers_; }
  // Those of them that were heard lately, and take work.
  int64_t Alive() const;

 private:
  Result<void> DrainOddNodes();
  void Tell();

  WorkQueue& queue_;
  Pilots* const pilots_;
  const SupervisorTerms terms_;
  const SupervisorEvents events_;
  std::vector<KnownWorker> workers_;
  std::set<std::string> flagged_;  // workers
  int64_t tended_ns_ = 0, heard_ns_ = 0, trouble_ns_ = 0;
  int failures_ = 0;  // of the queue, in a row
  bool told_of_none_ = false, ended_ = false;
};

}  // namespace assay
