// Judges the candidates of a search by the pilots of a queue. A process that goes on with a search
// finds in the queue what was judged while none ran.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/supervisor.h"
#include "queue/work_queue.h"
#include "search/sources.h"
#include "session/asked_terms.h"

namespace assay {

struct QueueJudgesTerms {
  std::string run;                  // its name in the queue
  std::vector<std::string> suites;  // folders of installed ones
  AskedTerms screening;             // of the first look
  AskedTerms confirming;            // of the second
  int nodes = 1;                    // workers that will come
  SupervisorTerms supervisor = {};
  double look_s = 0.2;  // between two looks at what has ended
};

class QueueJudges : public VerdictSource {
 public:
  // `pilots` may be null: somebody else starts them. All arguments must outlive this object.
  QueueJudges(WorkQueue& queue, Pilots* pilots, QueueJudgesTerms terms, SupervisorEvents events);

  void Add(JudgeTask task) override;
  void Know(const std::string& artifact) override { known_.insert(artifact); }
  void Race(double bound) override { terms_.screening.bound = bound; }
  // Errors: nothing can be judged on any node, the queue cannot be used, or pilots cannot start.
  Result<std::vector<JudgedTask>> Wait(int timeout_ms) override;
  // Ends the pilots. Works stay in the queue, for a process that goes on.
  std::vector<JudgedTask> Stop() override;
  // None is lost at the end of this process: pilots go on, and the queue keeps their verdicts.
  size_t judged_at_once() const override { return 0; }

 private:
  // The key of a step's work; another one after works that failed.
  std::string KeyOf(const std::string& step) const;
  Result<NewWork> WorkOf(const JudgeTask& task) const;
  // Works that may be queued: one more than there are workers. What waits here is queued with a
  // newer bound, and with more artifacts that are known.
  size_t Room() const;
  // Queues what was added, as far as there is room.
  Result<void> AddWaiting();
  // Hears what has ended since the last call.
  Result<void> Collect();
  void Keep(const std::string& key, const EndedWork& ended);

  WorkQueue& queue_;
  QueueJudgesTerms terms_;
  Supervisor supervisor_;
  std::deque<JudgeTask> waiting_;               // to be queued
  std::map<std::string, std::string> step_of_;  // works in hand: key of the step, by the work's
  std::map<std::string, EndedWork> earlier_;    // by key: verdicts that an earlier process missed
  std::map<std::string, int> failed_;           // works of an earlier process, by step
  std::set<std::string> known_;                 // artifacts
  std::vector<JudgedTask> done_;
  int64_t after_ = 0;      // sequence of the last end that was heard
  int64_t looked_ns_ = 0;  // 0: not yet
  int64_t ended_ = 0;      // works
  int failures_ = 0;       // in a row, without a verdict
  bool any_verdict_ = false;
  Error last_failure_;
};

}  // namespace assay
