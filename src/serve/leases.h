// Runners, and the leases by which they hold jobs.
//
// A runner that a mentor promoted, or the server's own, takes everybody's jobs but its owner's, and
// its verdicts count: nobody is the judge of oneself. A mentor of the server may be. Any other one
// is its owner's own: it takes the owner's jobs alone, no finals and no spot checks, and none once
// the owner's class is closed. Its verdicts are marked, and have no rank.
//
// Theory of operation. A runner that takes a job gets a lease: random, kept as its SHA-256. The
// lease alone lets it report on that attempt. It ends if the runner is silent for `silence_ms`, or
// holds the job for `whole_ms`; the job goes back to its place in the queue, and fails after
// `attempts_max` attempts. Leases end by a clock that never goes back. It means nothing to the next
// process: one that is started again gives all leases their time once more. A result that comes
// under another lease than the job's does not count.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/database.h"
#include "serve/instant.h"
#include "serve/types.h"

namespace assay {

struct LeaseLimits {
  int64_t silence_ms = 60'000;
  int64_t whole_ms = 900'000;
  int attempts_max = 3;
  int64_t events_max = 2000;  // of a job: later ones of its runner's are left out
  // But for the server's own account:
  int64_t runners_max = 20;  // of an account
  int64_t jobs_max = 4;      // that a runner has at a time, some of them perhaps by dead processes
};

// A runner that asked for work, or told of a job, so lately is there.
inline constexpr int64_t kRunnerIsThereS = 90;

struct KnownRunner {
  int64_t id = 0;
  Account owner;
  std::string name, device, version;
  std::string machine;  // its profile as JSON; empty: not known
  bool promoted = false;
  std::string seen;       // ISO 8601, UTC
  bool is_there = false;  // it was seen lately
  int64_t job = 0;        // that it has; 0: none
};

struct LeasedJob {
  Job job;
  std::string lease;  // kept nowhere else
  std::string opponent_name;
};

// A runner's error in a verdict's place.
struct RunnerError {
  // "usage": the job is wrong; "unjudged": this machine lacks what it needs; "interrupted": it is
  // given back, which costs no attempt unless an own runner does so. Others are faults of the
  // machine.
  std::string kind;
  std::string message;
};

enum class Ending {
  kCounted,
  kRepeated,   // this lease ended the job before: that stands
  kRequeued,   // the job waits for another attempt
  kNotCounted  // the lease is over
};

class Leases {
 public:
  Leases(Database& database, LeaseLimits limits) : database_(database), limits_(limits) {}

  // A runner of that account says that it is there. An account's runner is known by its name.
  // Errors (kUsage): the account has too many.
  Result<KnownRunner> Meet(const Account& owner, const KnownRunner& facts, bool promoted,
                           Instant now);
  Result<std::vector<KnownRunner>> Runners(Instant now);
  // A runner that is not promoted any more loses the job that it has, which goes back to the queue.
  Result<bool> Promote(int64_t runner, bool promoted, Instant now);

  // The first job of the queue that the runner may have; nullopt: there is none. `runner`: of
  // Meet().
  Result<std::optional<LeasedJob>> Take(const KnownRunner& runner, Instant now);
  // Jobs of the queue that no runner that is there may have; of one job, whether it is such.
  Result<int64_t> WaitingForNobody(Instant now);
  Result<bool> WaitsForNobody(int64_t job, Instant now);
  // Jobs of the queue that a promoted runner of this device may have.
  Result<int64_t> Waiting(const std::string& device);
  // Renews the lease; false: it is over. `event`: a line of the worker's, as JSON; may be empty.
  Result<bool> Renew(int64_t job, const std::string& lease, const std::string& event, Instant now);
  // The verdict is kept with the end of the job, until Archived() is told.
  Result<Ending> EndWithVerdict(int64_t job, const std::string& lease, const std::string& verdict,
                                const std::string& id, const std::string& outcome, Instant now);
  // A machine that lacks what the job needs ends it, unless another runner is there that may take
  // it: then that one is next. Of a native candidate the runner refuses the problem's size: it gets
  // jobs of this size after others alone, for a day.
  Result<Ending> EndWithError(int64_t job, const std::string& lease, const RunnerError& error,
                              Instant now);
  struct ProblemSize {
    std::string problem, size;
    auto operator<=>(const ProblemSize&) const = default;
  };
  // Sizes that all promoted runners that are there refuse.
  Result<std::vector<ProblemSize>> RefusedByAll(Instant now);
  // Takes jobs from runners that are silent. Returns these jobs.
  Result<std::vector<int64_t>> Expire(Instant now);

  struct KeptVerdict {
    int64_t job = 0;
    std::string verdict;  // JSON
  };
  Result<std::vector<KeptVerdict>> NotArchived();
  Result<void> Archived(int64_t job);

 private:
  struct Times {
    int64_t silent_at_ms = 0, over_at_ms = 0;
  };
  // The job's lease is this one: renewed, if it is not over.
  Result<bool> Holds(int64_t job, const std::string& lease, Instant now);
  Result<Ending> IfRepeated(int64_t job, const std::string& lease);
  // Back to the queue, or failed after the last attempt. `gives_back`: the attempt does not count.
  Result<bool> PutBack(int64_t job, const std::string& lease_hash, const std::string& why,
                       bool gives_back, Instant now);
  Result<bool> Fail(int64_t job, const std::string& lease_hash, const std::string& why,
                    Instant now);
  Result<bool> IsFinal(int64_t job);
  // As EndWithError() has it. `by_the_runner`: no candidate can be the reason. Returns whether the
  // job failed, and not only this attempt.
  Result<bool> Refused(int64_t job, bool by_the_runner, Instant now);

  Database& database_;
  LeaseLimits limits_;
  std::map<int64_t, Times>
      times_;  // of running jobs; one that is missing begins when it is looked at
};

}  // namespace assay
