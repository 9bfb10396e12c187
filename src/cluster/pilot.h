// A pilot: one process of a node that claims works of a queue and judges them by a worker on one
// device. It says that it lives while it judges, and hands back what it cannot end.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "cluster/work_request.h"
#include "http/back_off.h"
#include "queue/work_queue.h"
#include "runner/job_worker.h"
#include "runner/server_link.h"

namespace assay {

struct PilotTerms {
  WorkerFacts facts;
  std::vector<std::string> suites;  // folders of installed ones
  double beat_s = 10;
  double seconds_max = 3600;         // of one judgement
  double stop_after_s = 0;           // then it hands back what it has and ends; 0: never
  double idle_stop_s = 0;            // ends after so long without work; 0: never
  double queue_trouble_max_s = 600;  // ends if the queue cannot be used for so long
  int failures_max = 3;              // of the machine, in a row
  double claim_s = 4;                // claims as many works as it judges in about this time
  int works_max = 8;                 // at most
  BackOff back_off;
};

struct PilotParts {
  WorkQueue& queue;
  JobWorker& worker;
  JobFiles& files;
  RepeatSurroundings repeats;
  std::function<void(const std::string&)> say;  // to the log, a line
};

class Pilot {
 public:
  Pilot(PilotTerms terms, PilotParts parts);
  // Judges until `stop`. Returns the reason of its end: kInterrupted (`stop`, its time is over, or
  // there was no work for long), kUsage (it has another version than the work), kEnvironment (this
  // node cannot judge, or the queue cannot be used).
  Error Run(StopToken stop);

 private:
  Result<void> TakeSome(StopToken stop);
  Result<void> JudgeOne(StopToken stop);
  Result<std::string> Judge(const ClaimedWork& work, const WorkRequest& request, StopToken stop);
  Result<void> End(const ClaimedWork& work, const Result<std::string>& judged);
  // Tells that it lives, if it is time; forgets works that are no longer its.
  void Beat();
  bool Holds(int64_t id) const;
  void HandBack();
  bool TimeIsOver() const;
  // Another look at a call that failed: waits, or returns its error after too long.
  Result<void> Bear(const Error& error, StopToken stop);
  double Now() const;  // seconds

  const PilotTerms terms_;
  const PilotParts parts_;
  const double started_s_;
  std::vector<ClaimedWork> held_;  // the first is in hand
  double beaten_s_ = 0, worked_s_ = 0, expired_s_ = 0;
  double judgement_s_ = 0;  // that the last one took; 0: none yet
  int failures_ = 0;        // of the machine, in a row
  int calls_failed_ = 0;    // of the queue, in a row
  double trouble_since_s_ = 0;
};

}  // namespace assay
