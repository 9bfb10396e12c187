// A queue of candidates that many machines judge. Controllers add work and read what became of it;
// pilots claim work, say that they live, and end it. Engines implement it: PostgreSQL, a folder on
// a shared file system, memory. work_queue_conformance_test.h has the tests that each must pass.
//
// Theory of operation. A claim is one attempt at a work, and has its number. The attempt that holds
// the work alone can end it; so a work ends exactly once. A claim is over when its worker is silent
// for the queue's lease, as the queue's own clock says, or gives the work back. Claimed works go
// back to their place, and fail after the last attempt. Of runs of one priority the one with the
// fewest claimed works goes first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay {

struct NewWork {
  std::string run;      // controllers of one run share its name
  std::string key;      // within a run: work with an equal key is queued once
  std::string group;    // works of one group share a problem's session: claimed together
  std::string device;   // "cpu" or "cuda": which workers may claim it
  int priority = 0;     // higher ones first
  std::string request;  // JSON: all that a machine without shared files needs to judge it
};

enum class WorkState {
  kQueued,
  kClaimed,
  kJudged,
  kFailed,
  kCancelled
};  // the last three are ends

// A pilot: one process that judges on one device of one node.
struct WorkerFacts {
  std::string name;          // unique: node, device, process
  std::string node, device;  // "cpu", "cuda"
  std::string model;         // of the device
  std::string version;       // of Assay
  std::string job;           // of the cluster's scheduler; empty: none
  std::string measures;      // JSON: rates of the device by name; empty: not measured
};

struct ClaimedWork {
  int64_t id = 0;
  int attempt = 0;  // from 1
  std::string run, key, request;
};

struct WorkEnd {
  // JSON; empty: `error` says why there is none. Of a request that names known artifacts it may be
  // the worker's `known` event.
  std::string verdict;
  std::string error;  // JSON: kind, message
  // The machine failed, not the work: it goes back to the queue, and ends after the last attempt.
  bool again = false;
};

struct EndedWork {
  int64_t sequence = 0;  // rising, as this object tells ends; a new object begins anew
  std::string run, key;
  WorkState state = WorkState::kJudged;
  WorkEnd end;
  int attempts = 0;
  std::string worker, node, model;
};

struct KnownWorker {
  WorkerFacts facts;
  double silent_s = 0;  // since its last word
  std::string doing;    // keys that it has claimed
  int64_t judged = 0, faults = 0;
  double judged_an_hour = 0;
  std::string drained;  // why it gets no more work; empty: it does
};

struct QueueTerms {
  double lease_s = 60;   // a worker that is silent so long has lost what it claimed
  int attempts_max = 3;  // attempts that failed: then the work has
};

struct QueueCounts {
  int64_t queued = 0, claimed = 0, judged = 0, failed = 0, cancelled = 0;
};

// One thread at a time uses a queue. Errors (kEnvironment) leave what stands in it as it was;
// every call may be repeated after one.
class WorkQueue {
 public:
  virtual ~WorkQueue() = default;

  // When it returns, the works survive the end of any process. Those that are known stay as they
  // are. Returns how many were new.
  virtual Result<int64_t> Add(std::span<const NewWork> works) = 0;
  // Up to `works_max` works of one group, for a worker of this device that is not drained.
  virtual Result<std::vector<ClaimedWork>> Claim(const WorkerFacts& worker, int works_max) = 0;
  // The worker lives. Returns the ids of those of `held` that are no longer its: cancelled, or
  // given to another.
  virtual Result<std::vector<int64_t>> Beat(const WorkerFacts& worker,
                                            std::span<const ClaimedWork> held) = 0;
  // True if it counts: the attempt held the work, or had ended it before. An end with `again`
  // counts as an attempt that failed.
  virtual Result<bool> End(const WorkerFacts& worker, const ClaimedWork& work,
                           const WorkEnd& end) = 0;
  // Back to the queue; the attempt does not count.
  virtual Result<void> GiveBack(const WorkerFacts& worker, std::span<const ClaimedWork> works) = 0;
  // Works of silent workers go back to the queue, or fail after the last attempt. Returns how many.
  virtual Result<int64_t> Expire() = 0;

  // Ends of this run, in their order, from those after `sequence` on.
  virtual Result<std::vector<EndedWork>> Ended(const std::string& run, int64_t after,
                                               int64_t limit) = 0;
  // The `after` for a first call of Ended that reads all ends of these works, and few that are
  // before them: a controller that was started again passes over those that it has kept.
  virtual Result<int64_t> ReadFrom(const std::string& run, std::span<const std::string> keys) = 0;
  // Waits until something was added or ended; at most `timeout_ms`. May return early.
  virtual Result<void> Wait(int timeout_ms) = 0;
  virtual Result<QueueCounts> Counts(const std::string& run) = 0;  // empty: of all runs
  virtual Result<void> Cancel(const std::string& run) = 0;
  // Nobody will ask for ends of this run again, or add to it; all its works have ended. An engine
  // may drop what it keeps of them.
  virtual void Forget(const std::string& /*run*/) {}

  virtual Result<std::vector<KnownWorker>> Workers() = 0;
  // The worker gets no more work; an empty `why` lets it go on.
  virtual Result<void> Drain(const std::string& worker, const std::string& why) = 0;
};

}  // namespace assay
