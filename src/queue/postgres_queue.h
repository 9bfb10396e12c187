// A queue in a PostgreSQL database (docs/database.md), by a URL. postgres_queue_schema.h has its
// theory of operation. A lost connection is sought again: every call bears being repeated, a claim
// by its ticket.
#pragma once

#include <memory>
#include <string>

#include "archive/postgres_session.h"
#include "queue/work_queue.h"

namespace assay {

class PostgresQueue : public WorkQueue {
 public:
  // Makes the tables where they are missing. Errors: PostgresConnection::Open, MigratePostgres.
  static Result<std::unique_ptr<PostgresQueue>> Open(const std::string& url, QueueTerms terms,
                                                     PostgresSessionOptions options = {});

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
  Result<std::vector<KnownWorker>> Workers() override;
  Result<void> Drain(const std::string& worker, const std::string& why) override;

 private:
  PostgresQueue(PostgresSession session, QueueTerms terms)
      : session_(std::move(session)), terms_(terms) {}

  PostgresSession session_;
  QueueTerms terms_;
  int listening_ = 0;  // the connection that listens
};

}  // namespace assay
