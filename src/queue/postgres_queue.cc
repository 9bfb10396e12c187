#include "queue/postgres_queue.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/secret.h"
#include "queue/postgres_queue_schema.h"

namespace assay {
namespace {

constexpr size_t kChunkWorks = 1000, kChunkBytes = 4 << 20;
constexpr size_t kTicketBytes = 8, kKeysAtOnce = 10000;
constexpr double kHourS = 3600;
// A transaction of its own that nobody flushes: notifying holds a lock of the whole server to the
// end of its transaction.
constexpr const char* kWithoutFlush = "SELECT set_config('synchronous_commit', 'off', true)";
constexpr const char* kNotify = "SELECT pg_notify('assay_queue', '')";

std::vector<std::string> FactsOf(const WorkerFacts& worker) {
  return {worker.name,    worker.node, worker.device,  worker.model,
          worker.version, worker.job,  worker.measures};
}

// Works of one run, as arrays.
struct Chunk {
  std::vector<std::string> keys, groups, devices, requests;
  std::vector<int64_t> priorities;
  size_t bytes = 0;

  void Add(const NewWork& work) {
    keys.push_back(work.key);
    groups.push_back(work.group);
    devices.push_back(work.device);
    requests.push_back(work.request);
    priorities.push_back(work.priority);
    bytes += work.request.size();
  }
  bool full() const { return keys.size() >= kChunkWorks || bytes >= kChunkBytes; }
  PostgresCommand Command(const std::string& run) const {
    PostgresValues values;
    values.Text(run).Texts(keys).Texts(groups).Texts(devices).Numbers(priorities).Texts(requests);
    return {"SELECT assay.queue_add($1, $2, $3, $4, $5, $6)", std::move(values)};
  }
};

// The ids and attempts of held works, as two arrays.
void AddHeld(std::span<const ClaimedWork> held, PostgresValues* values) {
  std::vector<int64_t> ids, attempts;
  for (const ClaimedWork& work : held) {
    ids.push_back(work.id);
    attempts.push_back(work.attempt);
  }
  values->Numbers(ids).Numbers(attempts);
}

WorkState StateOf(const std::string& name) {
  if (name == "judged") return WorkState::kJudged;
  return name == "cancelled" ? WorkState::kCancelled : WorkState::kFailed;
}

}  // namespace

Result<std::unique_ptr<PostgresQueue>> PostgresQueue::Open(const std::string& url, QueueTerms terms,
                                                           PostgresSessionOptions options) {
  ASSAY_ASSIGN_OR_RETURN(PostgresSession session, PostgresSession::Open(url, std::move(options)));
  ASSAY_RETURN_IF_ERROR(
      MigratePostgres(session, "queue", kPostgresQueueMigrations, SchemaAccess::kWrite));
  return std::unique_ptr<PostgresQueue>(new PostgresQueue(std::move(session), terms));
}

Result<int64_t> PostgresQueue::Add(std::span<const NewWork> works) {
  if (works.empty()) return 0;
  std::vector<PostgresCommand> commands;
  std::map<std::string, Chunk> by_run;
  std::vector<std::string> runs;  // in the order in which they come first
  for (const NewWork& work : works) {
    if (!by_run.contains(work.run)) runs.push_back(work.run);
    Chunk& chunk = by_run[work.run];
    chunk.Add(work);
    if (!chunk.full()) continue;
    commands.push_back(chunk.Command(work.run));
    chunk = Chunk();
  }
  for (const std::string& run : runs)
    if (const Chunk& chunk = by_run[run]; !chunk.keys.empty())
      commands.push_back(chunk.Command(run));
  // Those that a lost answer hid count as known when they are added again.
  return session_.Do([&](PostgresConnection& connection) -> Result<int64_t> {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<PostgresRows> answers, connection.Pipeline(commands));
    int64_t added = 0;
    for (const PostgresRows& rows : answers) added += rows.Number(0, 0);
    return added;
  });
}

Result<std::vector<ClaimedWork>> PostgresQueue::Claim(const WorkerFacts& worker, int works_max) {
  ASSAY_ASSIGN_OR_RETURN(const std::string ticket, RandomHex(kTicketBytes));
  bool again = false;
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows, session_.Do([&](PostgresConnection& connection) {
    PostgresValues values;
    values.Texts(FactsOf(worker)).Text(ticket).Number(std::exchange(again, true) ? 1 : 0);
    values.Number(works_max).Real(terms_.lease_s);
    return connection.Query("SELECT * FROM assay.queue_claim($1, $2, $3 = 1, $4, $5)", values);
  }));
  std::vector<ClaimedWork> works;
  for (int row = 0; row < rows.size(); ++row)
    works.push_back({rows.Number(row, 0), static_cast<int>(rows.Number(row, 1)), rows.Text(row, 2),
                     rows.Text(row, 3), rows.Text(row, 4)});
  return works;
}

Result<std::vector<int64_t>> PostgresQueue::Beat(const WorkerFacts& worker,
                                                 std::span<const ClaimedWork> held) {
  PostgresValues values;
  values.Texts(FactsOf(worker));
  AddHeld(held, &values);
  values.Real(terms_.lease_s);
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows,
                         session_.Query("SELECT * FROM assay.queue_beat($1, $2, $3, $4)", values));
  std::vector<int64_t> lost;
  for (int row = 0; row < rows.size(); ++row) lost.push_back(rows.Number(row, 0));
  return lost;
}

Result<bool> PostgresQueue::End(const WorkerFacts& worker, const ClaimedWork& work,
                                const WorkEnd& end) {
  PostgresValues values;
  values.Texts(FactsOf(worker)).Number(work.id).Number(work.attempt).Text(end.verdict);
  values.Text(end.error).Number(end.again ? 1 : 0).Number(terms_.attempts_max);
  const std::vector<PostgresCommand> commands = {
      {"SELECT assay.queue_end($1, $2, $3, $4, $5, $6 = 1, $7)", std::move(values), true},
      {kWithoutFlush},
      {kNotify}};
  return session_.Do([&](PostgresConnection& connection) -> Result<bool> {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<PostgresRows> answers, connection.Pipeline(commands));
    return answers.front().Number(0, 0) != 0;
  });
}

Result<void> PostgresQueue::GiveBack(const WorkerFacts& worker,
                                     std::span<const ClaimedWork> works) {
  PostgresValues values;
  values.Texts(FactsOf(worker));
  AddHeld(works, &values);
  const std::vector<PostgresCommand> commands = {
      {"SELECT assay.queue_give_back($1, $2, $3)", std::move(values), true},
      {kWithoutFlush},
      {kNotify}};
  return session_.Do([&](PostgresConnection& connection) -> Result<void> {
    ASSAY_RETURN_IF_ERROR(connection.Pipeline(commands));
    return {};
  });
}

Result<int64_t> PostgresQueue::Expire() {
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows,
                         session_.Query("SELECT assay.queue_expire($1)",
                                        PostgresValues().Number(terms_.attempts_max)));
  return rows.Number(0, 0);
}

Result<std::vector<EndedWork>> PostgresQueue::Ended(const std::string& run, int64_t after,
                                                    int64_t limit) {
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows,
                         session_.Query("SELECT * FROM assay.queue_ended($1, $2, $3)",
                                        PostgresValues().Text(run).Number(after).Number(limit)));
  std::vector<EndedWork> works;
  for (int row = 0; row < rows.size(); ++row) {
    EndedWork work;
    work.sequence = rows.Number(row, 0);
    work.run = run;
    work.key = rows.Text(row, 1);
    work.state = StateOf(rows.Text(row, 2));
    work.end = {rows.Text(row, 3), rows.Text(row, 4)};
    work.attempts = static_cast<int>(rows.Number(row, 5));
    work.worker = rows.Text(row, 6);
    work.node = rows.Text(row, 7);
    work.model = rows.Text(row, 8);
    works.push_back(std::move(work));
  }
  return works;
}

Result<int64_t> PostgresQueue::ReadFrom(const std::string& run, std::span<const std::string> keys) {
  // A work of an early part that ends meanwhile has a number above all that a later part tells.
  int64_t from = INT64_MAX;
  do {
    const size_t size = std::min(keys.size(), kKeysAtOnce);
    const std::vector<std::string> some(keys.begin(), keys.begin() + static_cast<int64_t>(size));
    keys = keys.subspan(size);
    ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows,
                           session_.Query("SELECT assay.queue_read_from($1, $2)",
                                          PostgresValues().Text(run).Texts(some)));
    from = std::min(from, rows.Number(0, 0));
  } while (!keys.empty());
  return from;
}

Result<void> PostgresQueue::Wait(int timeout_ms) {
  return session_.Do([&](PostgresConnection& connection) -> Result<void> {
    if (listening_ != session_.connections()) {
      ASSAY_RETURN_IF_ERROR(connection.Listen("assay_queue"));
      listening_ = session_.connections();
      return {};  // something may have come before
    }
    ASSAY_RETURN_IF_ERROR(connection.WaitForNotice(timeout_ms));
    return {};
  });
}

Result<QueueCounts> PostgresQueue::Counts(const std::string& run) {
  ASSAY_ASSIGN_OR_RETURN(
      const PostgresRows rows,
      session_.Query("SELECT * FROM assay.queue_counts($1)", PostgresValues().Text(run)));
  return QueueCounts{rows.Number(0, 0), rows.Number(0, 1), rows.Number(0, 2), rows.Number(0, 3),
                     rows.Number(0, 4)};
}

Result<void> PostgresQueue::Cancel(const std::string& run) {
  ASSAY_RETURN_IF_ERROR(
      session_.Query("SELECT assay.queue_cancel($1)", PostgresValues().Text(run)));
  return {};
}

Result<std::vector<KnownWorker>> PostgresQueue::Workers() {
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows,
                         session_.Query("SELECT * FROM assay.queue_workers()"));
  std::vector<KnownWorker> workers;
  for (int row = 0; row < rows.size(); ++row) {
    KnownWorker worker;
    worker.facts = {rows.Text(row, 0), rows.Text(row, 1), rows.Text(row, 2), rows.Text(row, 3),
                    rows.Text(row, 4), rows.Text(row, 5), rows.Text(row, 6)};
    worker.silent_s = rows.Real(row, 7);
    worker.doing = rows.Text(row, 8);
    worker.judged = rows.Number(row, 9);
    worker.faults = rows.Number(row, 10);
    if (const double known_s = rows.Real(row, 11); known_s > 0)
      worker.judged_an_hour = static_cast<double>(worker.judged) / known_s * kHourS;
    worker.drained = rows.Text(row, 12);
    workers.push_back(std::move(worker));
  }
  return workers;
}

Result<void> PostgresQueue::Drain(const std::string& worker, const std::string& why) {
  ASSAY_RETURN_IF_ERROR(
      session_.Query("SELECT assay.queue_drain($1, $2)", PostgresValues().Text(worker).Text(why)));
  return {};
}

}  // namespace assay
