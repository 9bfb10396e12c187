// Jobs: judgements that were asked for, in a durable queue.
//
// Theory of operation. Each job gets a tag when it is accepted: one more than its account's job
// before it, but at least the tag of the job that was taken last. The queue is in the order of
// tags, then of acceptance. So accounts take turns, an account that was idle gains nothing by it,
// and among accounts with one job each the oldest comes first. A job ends once: the database
// refuses to change one that has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "serve/database.h"
#include "serve/instant.h"
#include "serve/job_rows.h"
#include "serve/types.h"

namespace assay {

struct QueueLimits {
  int64_t queued_max = 1000;
  int64_t queued_by_account_max = 50;
  int64_t made_a_day_max = 500;  // by an account, in any 24 hours; cancelled ones apart
};

struct NewJob {
  JobKind kind = JobKind::kJudge;
  Account author;
  std::string problem, size;
  std::map<std::string, std::string> set;
  std::string name;           // of the candidate's file
  std::string source_hash;    // of a blob of the archive
  std::string opponent_hash;  // likewise; empty: none
  std::string opponent_name;
  std::string key;    // the client's own, once for each job; empty: none
  std::string needs;  // "cpu", "cuda"; empty: as the candidate's file needs it
};

// The device that a candidate of this file name needs: "cuda", "cpu", or empty for any.
std::string DeviceNeededBy(const std::string& name);

enum class Submission {
  kAccepted,
  kKnown,       // the same request with the same key had been accepted: `job` is that one
  kKeyReused,   // another request has this key
  kQueueFull,   // for all
  kQuotaSpent,  // for this account
};
struct Submitted {
  Submission result = Submission::kAccepted;
  Job job;          // if it is accepted or known
  std::string why;  // of a refusal: what to do
  int retry_after_s = 0;
};

struct JobQuery {
  int64_t account = 0;                 // 0: all
  std::optional<JobState> state = {};  // nullopt: all
  bool unended = false;                // those that have not ended alone
  int64_t before = 0;                  // ids below this one; 0: all
  int64_t limit = 100;
};

class Jobs {
 public:
  Jobs(Database& database, QueueLimits limits) : database_(database), limits_(limits) {}

  // When it returns kAccepted, the job survives the end of any process.
  Result<Submitted> Submit(const NewJob& asked, Instant now) { return Submit(asked, limits_, now); }
  // By limits of the account's own, such as those of its class. Finals and spot checks, which the
  // server asks for, count towards no quota, and a spot check costs its author no turn.
  // `keep` runs once the job will be accepted, and before it is: it keeps the source. So a request
  // that is refused leaves nothing on the disk.
  Result<Submitted> Submit(const NewJob& asked, const QueueLimits& limits, Instant now,
                           const std::function<Result<void>()>& keep = {});
  Result<std::optional<Job>> Find(int64_t id) { return FindJob(database_, id); }
  // Newest first; those that wait in the order of the queue.
  Result<std::vector<Job>> List(const JobQuery& query);
  // Ends a job that has not ended, whoever runs it. Returns false if it had ended before.
  Result<bool> Cancel(int64_t id, Instant now);
  Result<std::vector<JobEvent>> Events(int64_t job, int64_t after, int64_t limit) {
    return ReadJobEvents(database_, job, after, limit);
  }
  struct QueueFacts {
    int64_t queued = 0, running = 0;
  };
  Result<QueueFacts> Queue();
  struct AccountFacts {
    int64_t unended = 0;     // queued or running
    int64_t made_today = 0;  // in 24 hours, of those that count towards a quota
    int64_t sent_today = 0;  // likewise, with those that were cancelled
  };
  Result<AccountFacts> OfAccount(int64_t account, Instant now);
  const QueueLimits& limits() const { return limits_; }

 private:
  // A refusal, or nullopt.
  Result<std::optional<Submitted>> Refuse(const NewJob& asked, const QueueLimits& limits,
                                          Instant now);
  Result<std::optional<Submitted>> FindKey(const NewJob& asked, const std::string& request_hash);
  Result<int64_t> Insert(const NewJob& asked, const std::string& request_hash, Instant now);

  Database& database_;
  QueueLimits limits_;
};

}  // namespace assay
