// Conducts a run whose candidates are judged by the pilots of a queue: adds works, and keeps what
// becomes of each as soon as the queue tells. Whatever of the cluster dies, a second call with the
// same rows goes on.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "cluster/pilots.h"
#include "cluster/supervisor.h"
#include "queue/work_queue.h"
#include "run/conductor.h"

namespace assay {

struct QueueRunTerms {
  std::string run;                  // its name in the queue
  std::vector<std::string> suites;  // folders of installed ones
  int priority = 0;
  SupervisorTerms supervisor;
};

class QueueConductor {
 public:
  // `terms` without a problem. `pilots` may be null: somebody else starts them. All arguments must
  // outlive this object.
  QueueConductor(const RunPlan& plan, const AskedTerms& terms, WorkQueue& queue, Pilots* pilots,
                 QueueRunTerms run, ConductEvents events);

  // Judges these items of the plan. `earlier`: rows that the run has already; a work that ended in
  // an error before is a new work. Ends when all items have their row, a row cannot be kept, the
  // queue cannot be used, pilots cannot be started, or `stop` is set. Works that are left stay in
  // the queue.
  ConductEnd Run(const std::vector<size_t>& items, const std::vector<RunRow>& earlier,
                 StopToken stop);

 private:
  Result<void> AddAll(const std::vector<size_t>& items, const std::vector<RunRow>& earlier,
                      StopToken stop);
  // Keeps what has ended since the last call.
  Result<void> Collect();
  Result<void> Keep(std::span<const EndedWork> ended);
  RunRow RowOfEnd(const EndedWork& ended, size_t item) const;

  const RunPlan& plan_;
  const AskedTerms& terms_;
  WorkQueue& queue_;
  const QueueRunTerms run_;
  const ConductEvents events_;
  const std::string settings_;             // TermsText
  std::map<std::string, size_t> item_of_;  // by key of a work
  Supervisor supervisor_;
  int64_t left_ = 0, kept_ = 0;  // items
  int64_t after_ = 0;            // sequence of the last end that was kept
  bool row_failed_ = false;
};

}  // namespace assay
