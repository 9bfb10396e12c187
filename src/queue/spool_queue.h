// A queue in a folder that all machines share, for small clusters without a database
// (docs/cluster.md).
//
// Theory of operation. A work's token is in todo/ or in claims/ under its worker's name: a rename
// from one to the other claims it, since one rename of a file alone succeeds. A work ends by the
// link that gives its end a name in ends/: one link of a name alone succeeds. A token of a work
// that has ended means nothing, and goes. No clock of another machine is read: a worker lives while
// its file in workers/ changes, as seen from here by the clock of here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "queue/spool_files.h"
#include "queue/spool_names.h"
#include "queue/work_queue.h"

namespace assay {

class SpoolQueue : public WorkQueue {
 public:
  // Errors: kUsage (the folder holds something else, or a queue of another version), kEnvironment.
  static Result<std::unique_ptr<SpoolQueue>> Open(const std::string& place, QueueTerms terms,
                                                  std::function<int64_t()> now_ns);

  Result<int64_t> Add(std::span<const NewWork> works) override;
  Result<std::vector<ClaimedWork>> Claim(const WorkerFacts& worker, int works_max) override;
  Result<std::vector<int64_t>> Beat(const WorkerFacts& worker,
                                    std::span<const ClaimedWork> held) override;
  Result<bool> End(const WorkerFacts& worker, const ClaimedWork& work, const WorkEnd& end) override;
  Result<void> GiveBack(const WorkerFacts& worker, std::span<const ClaimedWork> works) override;
  Result<int64_t> Expire() override;
  Result<std::vector<EndedWork>> Ended(const std::string& run, int64_t after,
                                       int64_t limit) override;
  Result<int64_t> ReadFrom(const std::string& run, std::span<const std::string> keys) override;
  Result<void> Wait(int timeout_ms) override;
  Result<QueueCounts> Counts(const std::string& run) override;
  Result<void> Cancel(const std::string& run) override;
  void Forget(const std::string& run) override;
  Result<std::vector<KnownWorker>> Workers() override;
  Result<void> Drain(const std::string& worker, const std::string& why) override;

 private:
  // A worker that uses this object.
  struct OwnWorker {
    int64_t started_ns = 0, beats = 0, judged = 0, faults = 0;
  };
  struct Seen {
    std::string content;
    int64_t changed_ns = 0;
  };
  struct Ends {
    std::map<std::string, bool> known;  // by name
    std::vector<EndedWork> found;       // in the order in which they were
  };

  SpoolQueue(SpoolFiles files, QueueTerms terms, std::function<int64_t()> now_ns)
      : files_(std::move(files)), terms_(terms), now_ns_(std::move(now_ns)) {}
  Result<bool> AddOne(const NewWork& work, int64_t place);
  // Looks what can be claimed, if the last look is old.
  void Look(const std::string& device);
  // The place in waiting_ of the next token to try; its size: none is left.
  size_t NextToken() const;
  Result<bool> Take(SpoolToken token, const std::string& worker, std::vector<ClaimedWork>* claimed);
  bool HasEnded(const SpoolToken& token) const;
  // Its work has ended, and its run was forgotten.
  bool WasForgotten(const SpoolToken& token) const;
  std::filesystem::path EndPath(const SpoolToken& token) const;
  // The claim goes back to todo/, or the work ends with `error` after the last attempt.
  Result<void> TakeBack(const SpoolToken& claim, const std::string& error);
  Result<bool> MakeEnd(const SpoolToken& token, WorkState state, const WorkEnd& end,
                       const WorkerFacts& worker) const;
  Result<void> WriteWorker(const WorkerFacts& worker);
  std::vector<SpoolToken> Tokens(const char* kind) const;
  void LookAtEnds(const std::string& run_id);
  double SilenceOf(const std::string& worker_id);

  const SpoolFiles files_;
  const QueueTerms terms_;
  const std::function<int64_t()> now_ns_;
  std::vector<SpoolToken> waiting_;       // that this object may try to claim
  std::map<std::string, int> claims_of_;  // by run, as last seen
  int64_t looked_ns_ = 0;                 // 0: look anew
  std::string looked_for_;                // device
  std::map<int64_t, SpoolToken> held_;    // by the id of the claimed work
  int64_t next_id_ = 1;
  std::map<std::string, OwnWorker> own_;  // by name
  std::map<std::string, Seen> seen_;      // by worker's id
  std::map<std::string, Ends> ends_;      // by run's id
};

}  // namespace assay
