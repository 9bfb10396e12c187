#include "serve/job_rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "serve/words.h"

namespace assay {

// The place is counted, since others may come ahead: jobs of accounts that have fewer.
const char* const kJobColumns =
    "jobs.id, jobs.kind, jobs.state, accounts.id, accounts.name, accounts.role, accounts.class_id,"
    " jobs.problem, jobs.size, jobs.settings, jobs.name, jobs.source, jobs.opponent, jobs.made_s,"
    " jobs.ended_s, jobs.attempts, coalesce(runners.name, ''), jobs.outcome, jobs.verdict,"
    " jobs.failure, jobs.own_runner,"
    " CASE jobs.state WHEN 'queued' THEN 1 + (SELECT count(*) FROM jobs AS others"
    "   WHERE others.state = 'queued' AND (others.tag, others.id) < (jobs.tag, jobs.id))"
    " ELSE 0 END"
    " FROM jobs JOIN accounts ON accounts.id = jobs.account"
    " LEFT JOIN runners ON runners.id = jobs.runner";

Job JobOf(const SqliteStatement& row) {
  Job job;
  job.id = row.Number(0);
  job.kind = JobKindFromName(row.Text(1)).value_or(JobKind::kJudge);
  job.state = JobStateFromName(row.Text(2)).value_or(JobState::kFailed);
  job.author.id = row.Number(3);
  job.author.name = row.Text(4);
  job.author.role = RoleFromName(row.Text(5)).value_or(Role::kStudent);
  job.author.class_id = row.Number(6);
  job.problem = row.Text(7);
  job.size = row.Text(8);
  const auto settings = nlohmann::json::parse(row.Text(9), nullptr, false);
  if (settings.is_object())
    for (const auto& [name, value] : settings.items())
      if (value.is_string()) job.set[name] = value.get<std::string>();
  job.name = row.Text(10);
  job.source_hash = row.Text(11);
  job.opponent_hash = row.Text(12);
  job.made = UtcText(row.Number(13));
  job.ended = UtcText(row.Number(14));
  job.attempts = static_cast<int>(row.Number(15));
  job.runner = row.Text(16);
  job.outcome = row.Text(17);
  job.verdict = row.Text(18);
  job.failure = row.Text(19);
  job.own_runner = row.Number(20) != 0;
  job.place = row.Number(21);
  return job;
}

Result<std::vector<Job>> ReadJobs(SqliteStatement& select) {
  std::vector<Job> jobs;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return jobs;
    jobs.push_back(JobOf(select));
  }
}

Result<std::optional<Job>> FindJob(Database& database, int64_t id) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database.Prepare(fmt::format("SELECT {} WHERE jobs.id = ?", kJobColumns)));
  select.Bind(id);
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
  if (!found) return std::nullopt;
  return JobOf(select);
}

Result<int64_t> AddJobEvent(Database& database, int64_t job, Instant now, std::string_view body) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database.Prepare("INSERT INTO events(job, number, time_s, body) VALUES(?1,"
                       " 1 + coalesce((SELECT max(number) FROM events WHERE job = ?1), 0), ?2, ?3)"
                       " RETURNING number"));
  ASSAY_RETURN_IF_ERROR(insert.Bind(job).Bind(now.utc_s).Bind(body).Step());
  const int64_t number = insert.Number(0);
  ASSAY_RETURN_IF_ERROR(insert.Step());
  return number;
}

Result<std::vector<JobEvent>> ReadJobEvents(Database& database, int64_t job, int64_t after,
                                            int64_t limit) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database.Prepare("SELECT number, time_s, body FROM events WHERE job = ? AND number > ?"
                       " ORDER BY number LIMIT ?"));
  select.Bind(job).Bind(after).Bind(limit);
  std::vector<JobEvent> events;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return events;
    events.push_back({select.Number(0), UtcText(select.Number(1)), select.Text(2)});
  }
}

}  // namespace assay
