#include "serve/leases.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/secret.h"
#include "serve/job_rows.h"
#include "serve/words.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLeaseBytes = 16;
constexpr int64_t kSeenAgainS = 10, kRefusalS = 24 * 3600;
constexpr size_t kEventBytesMax = size_t{4} << 10, kFailureBytesMax = size_t{4} << 10;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string EndedEvent(JobState state, const std::string& name, const std::string& text) {
  Json event{{"event", "ended"}, {"state", JobStateName(state)}};
  if (!text.empty()) event[name] = text;
  return Dump(event);
}

// SQL: whether the runner of this alias may have the job `waiting`: leases.h has the rule.
std::string MayTake(std::string_view taker) {
  return fmt::format(R"((
  waiting.needs IN ('', CASE WHEN {0}.device LIKE 'cuda%' THEN 'cuda' ELSE 'cpu' END)
  AND CASE WHEN {0}.promoted THEN
    (waiting.account <> {0}.account OR EXISTS (SELECT 1 FROM accounts AS owner
      WHERE owner.id = {0}.account AND owner.role = 'mentor' AND owner.class_id = 0))
    AND (waiting.kind <> 'spot_check' OR NOT EXISTS (
      SELECT 1 FROM spot_checks JOIN jobs AS checked ON checked.id = spot_checks.checked
      JOIN runners AS first ON first.id = checked.runner
      WHERE spot_checks.job = waiting.id AND first.account = {0}.account))
  ELSE
    waiting.account = {0}.account AND waiting.kind IN ('judge', 'compare') AND NOT EXISTS (
      SELECT 1 FROM accounts JOIN classes ON classes.id = accounts.class_id
      WHERE accounts.id = waiting.account AND classes.closed_s <> 0)
  END))",
                     taker);
}

// SQL: whether the size of `waiting` is one that this runner refuses. ?3: the time.
std::string Refuses(std::string_view taker) {
  return fmt::format(R"((waiting.settings = '{{}}' AND EXISTS (
    SELECT 1 FROM refusals WHERE runner = {0}.id AND refusals.problem = waiting.problem
    AND refusals.size = waiting.size AND abs(refusals.time_s - ?3) < {1})))",
                     taker, kRefusalS);
}

// SQL: whether a runner beside `taker` is there that may take `waiting`, and does not refuse it.
std::string OthersMayTake() {
  return fmt::format(R"(EXISTS (SELECT 1 FROM runners AS other WHERE other.id <> taker.id
    AND other.seen_s > ?3 - {} AND {} AND NOT {}))",
                     kRunnerIsThereS, MayTake("other"), Refuses("other"));
}

// SQL: the jobs of the queue that no runner that is there may have. ?1: the time.
std::string ForNobody() {
  return fmt::format(R"(FROM jobs AS waiting WHERE waiting.state = 'queued' AND NOT EXISTS (
    SELECT 1 FROM runners AS taker WHERE taker.seen_s > ?1 - {} AND {}))",
                     kRunnerIsThereS, MayTake("taker"));
}

KnownRunner RunnerOf(const SqliteStatement& row) {
  KnownRunner runner;
  runner.id = row.Number(0);
  runner.owner.id = row.Number(1);
  runner.owner.name = row.Text(2);
  runner.owner.role = RoleFromName(row.Text(3)).value_or(Role::kStudent);
  runner.name = row.Text(4);
  runner.device = row.Text(5);
  runner.version = row.Text(6);
  runner.machine = row.Text(7);
  runner.promoted = row.Number(8) != 0;
  runner.seen = UtcText(row.Number(9));
  runner.job = row.Number(10);
  runner.owner.class_id = row.Number(11);
  return runner;
}

}  // namespace

Result<KnownRunner> Leases::Meet(const Account& owner, const KnownRunner& facts, bool promoted,
                                 Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement others,
      database_.Prepare(
          "SELECT count(*) FROM runners JOIN accounts ON accounts.id = account"
          " WHERE account = ?1 AND is_server = 0 AND runners.name <> ?2"
          " AND NOT EXISTS (SELECT 1 FROM runners WHERE account = ?1 AND name = ?2)"));
  ASSAY_RETURN_IF_ERROR(others.Bind(owner.id).Bind(facts.name).Step());
  if (others.Number(0) >= limits_.runners_max)
    return UsageError(fmt::format("an account has at most {} runners: use a name that is there",
                                  limits_.runners_max));
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement upsert,
      database_.Prepare(
          "INSERT INTO runners(account, name, device, version, machine, promoted, seen_s)"
          " VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(account, name) DO UPDATE SET"
          " device = excluded.device, version = excluded.version, seen_s = excluded.seen_s,"
          " machine = CASE excluded.machine WHEN '' THEN machine ELSE excluded.machine END,"
          " promoted = max(promoted, excluded.promoted) RETURNING id, promoted"));
  upsert.Bind(owner.id).Bind(facts.name).Bind(facts.device).Bind(facts.version);
  upsert.Bind(facts.machine).Bind(int64_t{promoted}).Bind(now.utc_s);
  ASSAY_RETURN_IF_ERROR(upsert.Step());
  KnownRunner runner = facts;
  runner.owner = owner;
  runner.id = upsert.Number(0);
  runner.promoted = upsert.Number(1) != 0;
  ASSAY_RETURN_IF_ERROR(upsert.Step());
  return runner;
}

Result<std::vector<KnownRunner>> Leases::Runners(Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(
          "SELECT runners.id, account, accounts.name, accounts.role, runners.name, device, version,"
          " machine, promoted, seen_s, coalesce((SELECT jobs.id FROM jobs WHERE"
          " jobs.state = 'running' AND jobs.runner = runners.id LIMIT 1), 0), accounts.class_id"
          " FROM runners JOIN accounts ON accounts.id = account WHERE device <> ''"
          " ORDER BY runners.id"));
  std::vector<KnownRunner> runners;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return runners;
    runners.push_back(RunnerOf(select));
    runners.back().is_there = select.Number(9) > now.utc_s - kRunnerIsThereS;
  }
}

Result<bool> Leases::Promote(int64_t runner, bool promoted, Instant now) {
  bool found = false;
  const auto done = database_.Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement update,
        database_.Prepare(
            "UPDATE runners SET promoted = ? WHERE id = ? AND device <> '' RETURNING id"));
    ASSAY_ASSIGN_OR_RETURN(found, update.Bind(int64_t{promoted}).Bind(runner).Step());
    if (found) ASSAY_RETURN_IF_ERROR(update.Step());
    if (!found || promoted) return {};
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                           database_.Prepare("SELECT id, lease FROM jobs WHERE state = 'running'"
                                             " AND runner = ? AND own_runner = 0"));
    select.Bind(runner);
    std::vector<std::pair<int64_t, std::string>> held;
    while (true) {
      ASSAY_ASSIGN_OR_RETURN(const bool more, select.Step());
      if (!more) break;
      held.emplace_back(select.Number(0), select.Text(1));
    }
    for (const auto& [job, lease] : held)
      ASSAY_RETURN_IF_ERROR(PutBack(job, lease, "its runner is promoted no more", true, now));
    return {};
  });
  if (!done) return std::unexpected(done.error());
  return found;
}

Result<std::optional<LeasedJob>> Leases::Take(const KnownRunner& runner, Instant now) {
  LeasedJob leased;
  ASSAY_ASSIGN_OR_RETURN(leased.lease, RandomHex(kLeaseBytes));
  bool found = false;
  const auto done = database_.Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement update,
        database_.Prepare(fmt::format(
            "UPDATE jobs SET state = 'running', lease = ?1, runner = ?2, attempts = attempts + 1,"
            " own_runner = (SELECT promoted = 0 FROM runners WHERE id = ?2)"
            " WHERE id = (SELECT waiting.id FROM jobs AS waiting JOIN runners AS taker"
            " ON taker.id = ?2 WHERE waiting.state = 'queued' AND {} AND NOT ({} AND {})"
            " AND (SELECT count(*) FROM jobs AS held WHERE held.state = 'running'"
            "   AND held.runner = ?2) < (SELECT CASE WHEN is_server THEN 1000000 ELSE {} END"
            "   FROM accounts WHERE accounts.id = taker.account)"
            " ORDER BY waiting.tag, waiting.id LIMIT 1) RETURNING id, tag, opponent_name",
            MayTake("taker"), Refuses("taker"), OthersMayTake(), limits_.jobs_max)));
    update.Bind(Sha256Hex(leased.lease)).Bind(runner.id).Bind(now.utc_s);
    ASSAY_ASSIGN_OR_RETURN(found, update.Step());
    if (!found) return {};
    leased.job.id = update.Number(0);
    const int64_t tag = update.Number(1);
    leased.opponent_name = update.Text(2);
    ASSAY_RETURN_IF_ERROR(update.Step());
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement taken,
        database_.Prepare("INSERT INTO settings(name, number) VALUES('taken tag', ?)"
                          " ON CONFLICT(name) DO UPDATE SET number = max(number, "
                          "excluded.number)"));
    ASSAY_RETURN_IF_ERROR(taken.Bind(tag).Step());
    ASSAY_RETURN_IF_ERROR(AddJobEvent(database_, leased.job.id, now,
                                      Dump({{"event", "taken"}, {"runner", runner.name}})));
    return {};
  });
  if (!done) return std::unexpected(done.error());
  if (!found) return std::nullopt;
  times_[leased.job.id] = {now.steady_ms + limits_.silence_ms, now.steady_ms + limits_.whole_ms};
  ASSAY_ASSIGN_OR_RETURN(auto job, FindJob(database_, leased.job.id));
  if (job) leased.job = std::move(*job);
  return leased;
}

Result<int64_t> Leases::WaitingForNobody(Instant now) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT count(*) " + ForNobody()));
  ASSAY_RETURN_IF_ERROR(select.Bind(now.utc_s).Step());
  return select.Number(0);
}

Result<bool> Leases::WaitsForNobody(int64_t job, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(fmt::format("SELECT 1 {} AND waiting.id = ?2", ForNobody())));
  return select.Bind(now.utc_s).Bind(job).Step();
}

Result<int64_t> Leases::Waiting(const std::string& device) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT count(*) FROM jobs WHERE state = 'queued'"
                                           " AND needs IN ('', ?)"));
  ASSAY_RETURN_IF_ERROR(select.Bind(device).Step());
  return select.Number(0);
}

Result<bool> Leases::Holds(int64_t job, const std::string& lease, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT lease FROM jobs WHERE id = ? AND state = 'running'"));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(job).Step());
  if (!found || lease.empty() || !IsSameSecret(select.Text(0), Sha256Hex(lease))) return false;
  const auto known = times_.find(job);
  if (known == times_.end()) {
    times_[job] = {now.steady_ms + limits_.silence_ms, now.steady_ms + limits_.whole_ms};
    return true;
  }
  if (now.steady_ms >= known->second.over_at_ms) return false;
  known->second.silent_at_ms = now.steady_ms + limits_.silence_ms;
  return true;
}

Result<bool> Leases::Renew(int64_t job, const std::string& lease, const std::string& event,
                           Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const bool holds, Holds(job, lease, now));
  if (!holds) return false;
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement seen,
                         database_.Prepare("UPDATE runners SET seen_s = ?1 WHERE seen_s < ?1 - ?2"
                                           " AND id = (SELECT runner FROM jobs WHERE id = ?3)"));
  ASSAY_RETURN_IF_ERROR(seen.Bind(now.utc_s).Bind(kSeenAgainS).Bind(job).Step());
  if (event.empty() || event.size() > kEventBytesMax) return true;
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT count(*) FROM events WHERE job = ?"));
  ASSAY_RETURN_IF_ERROR(select.Bind(job).Step());
  if (select.Number(0) < limits_.events_max)
    ASSAY_RETURN_IF_ERROR(AddJobEvent(database_, job, now, event));
  return true;
}

Result<Ending> Leases::IfRepeated(int64_t job, const std::string& lease) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT ended_lease FROM jobs WHERE id = ?"));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(job).Step());
  return found && !lease.empty() && IsSameSecret(select.Text(0), Sha256Hex(lease))
             ? Ending::kRepeated
             : Ending::kNotCounted;
}

Result<Ending> Leases::EndWithVerdict(int64_t job, const std::string& lease,
                                      const std::string& verdict, const std::string& id,
                                      const std::string& outcome, Instant now) {
  bool counted = false;
  const auto done = database_.Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(const bool holds, Holds(job, lease, now));
    if (!holds) return {};
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement update,
        database_.Prepare(
            "UPDATE jobs SET state = 'done', ended_lease = lease, lease = '', ended_s = max(?, 1),"
            " verdict = ?, outcome = ? WHERE id = ? AND state = 'running' AND lease = ?"
            " RETURNING id"));
    update.Bind(now.utc_s).Bind(id).Bind(outcome).Bind(job).Bind(Sha256Hex(lease));
    ASSAY_ASSIGN_OR_RETURN(counted, update.Step());
    if (!counted) return {};
    ASSAY_RETURN_IF_ERROR(update.Step());
    ASSAY_ASSIGN_OR_RETURN(SqliteStatement keep,
                           database_.Prepare("INSERT INTO endings(job, verdict) VALUES(?, ?)"));
    ASSAY_RETURN_IF_ERROR(keep.Bind(job).Bind(verdict).Step());
    ASSAY_RETURN_IF_ERROR(AddJobEvent(
        database_, job, now,
        Dump({{"event", "ended"}, {"state", "done"}, {"outcome", outcome}, {"verdict", id}})));
    return {};
  });
  if (!done) return std::unexpected(done.error());
  if (!counted) return IfRepeated(job, lease);
  times_.erase(job);
  return Ending::kCounted;
}

Result<bool> Leases::Fail(int64_t job, const std::string& lease_hash, const std::string& why,
                          Instant now) {
  const std::string text = why.substr(0, kFailureBytesMax);
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_.Prepare(
          "UPDATE jobs SET state = 'failed', ended_lease = lease, lease = '', ended_s = max(?, 1),"
          " failure = ? WHERE id = ? AND state = 'running' AND lease = ? RETURNING id"));
  update.Bind(now.utc_s).Bind(text).Bind(job).Bind(lease_hash);
  ASSAY_ASSIGN_OR_RETURN(const bool failed, update.Step());
  if (!failed) return false;
  ASSAY_RETURN_IF_ERROR(update.Step());
  ASSAY_RETURN_IF_ERROR(
      AddJobEvent(database_, job, now, EndedEvent(JobState::kFailed, "failure", text)));
  return true;
}

Result<bool> Leases::PutBack(int64_t job, const std::string& lease_hash, const std::string& why,
                             bool gives_back, Instant now) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT attempts, own_runner FROM jobs WHERE id = ?"
                                           " AND state = 'running'"));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(job).Step());
  if (!found) return false;
  // Otherwise it could go back and forth for ever, with two events each time.
  gives_back = gives_back && select.Number(1) == 0;
  if (!gives_back && select.Number(0) >= limits_.attempts_max)
    return Fail(job, lease_hash,
                fmt::format("nobody could judge it in {} attempts; the last one: {}",
                            select.Number(0), why),
                now);
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement update,
      database_.Prepare("UPDATE jobs SET state = 'queued', lease = '', attempts = attempts - ?"
                        " WHERE id = ? AND state = 'running' AND lease = ? RETURNING id"));
  update.Bind(int64_t{gives_back}).Bind(job).Bind(lease_hash);
  ASSAY_ASSIGN_OR_RETURN(const bool back, update.Step());
  if (!back) return false;
  ASSAY_RETURN_IF_ERROR(update.Step());
  ASSAY_RETURN_IF_ERROR(
      AddJobEvent(database_, job, now,
                  Dump({{"event", "requeued"}, {"why", why.substr(0, kFailureBytesMax)}})));
  return true;
}

Result<Ending> Leases::EndWithError(int64_t job, const std::string& lease, const RunnerError& error,
                                    Instant now) {
  bool counted = false, final = error.kind == "usage";
  const auto done = database_.Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(const bool holds, Holds(job, lease, now));
    if (!holds) return {};
    const std::string hash = Sha256Hex(lease);
    bool outdated = false;
    if (error.kind == "usage") {
      ASSAY_ASSIGN_OR_RETURN(outdated, IsFinal(job));
    }
    if (error.kind == "unjudged" || outdated) {
      ASSAY_ASSIGN_OR_RETURN(final, Refused(job, outdated, now));
    }
    ASSAY_ASSIGN_OR_RETURN(
        counted, final ? Fail(job, hash, error.message, now)
                       : PutBack(job, hash, error.message, error.kind == "interrupted", now));
    return {};
  });
  if (!done) return std::unexpected(done.error());
  if (!counted) return IfRepeated(job, lease);
  times_.erase(job);
  return final ? Ending::kCounted : Ending::kRequeued;
}

Result<bool> Leases::IsFinal(int64_t job) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT 1 FROM jobs WHERE id = ? AND kind = 'finalist'"));
  return select.Bind(job).Step();
}

Result<bool> Leases::Refused(int64_t job, bool by_the_runner, Instant now) {
  // A candidate in Python may claim that it lacks something.
  const std::string known = by_the_runner ? "1" : "waiting.name NOT LIKE '%.py'";
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement note,
      database_.Prepare(fmt::format("INSERT INTO refusals(runner, problem, size, time_s)"
                                    " SELECT runner, problem, size, ?2 FROM jobs AS waiting"
                                    " WHERE id = ?1 AND settings = '{{}}' AND {}"
                                    " ON CONFLICT DO UPDATE SET time_s = excluded.time_s",
                                    known)));
  ASSAY_RETURN_IF_ERROR(note.Bind(job).Bind(now.utc_s).Step());
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(fmt::format("SELECT 1 FROM jobs AS waiting JOIN runners AS taker"
                                    " ON taker.id = waiting.runner WHERE waiting.id = ?1"
                                    " AND {} AND {}",
                                    known, OthersMayTake())));
  ASSAY_ASSIGN_OR_RETURN(const bool others,
                         select.Bind(job).Bind(int64_t{0}).Bind(now.utc_s).Step());
  return !others;
}

Result<std::vector<Leases::ProblemSize>> Leases::RefusedByAll(Instant now) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("WITH there AS (SELECT id FROM runners WHERE promoted = 1"
                        "   AND seen_s > ?1 - ?2)"
                        " SELECT problem, size FROM refusals WHERE abs(time_s - ?1) < ?3"
                        " AND runner IN (SELECT id FROM there) GROUP BY problem, size"
                        " HAVING count(*) = (SELECT count(*) FROM there)"));
  select.Bind(now.utc_s).Bind(kRunnerIsThereS).Bind(kRefusalS);
  std::vector<ProblemSize> sizes;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool more, select.Step());
    if (!more) return sizes;
    sizes.push_back({select.Text(0), select.Text(1)});
  }
}

Result<std::vector<int64_t>> Leases::Expire(Instant now) {
  std::vector<std::pair<int64_t, std::string>> running;
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT id, lease FROM jobs WHERE state = 'running' ORDER BY id"));
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) break;
    running.emplace_back(select.Number(0), select.Text(1));
  }
  std::erase_if(times_, [&](const auto& held) {
    return std::ranges::none_of(running, [&](const auto& job) { return job.first == held.first; });
  });
  std::vector<int64_t> changed;
  for (const auto& [job, lease] : running) {
    const auto [times, is_new] = times_.try_emplace(
        job, Times{now.steady_ms + limits_.silence_ms, now.steady_ms + limits_.whole_ms});
    const bool silent = now.steady_ms >= times->second.silent_at_ms;
    if (!silent && now.steady_ms < times->second.over_at_ms) continue;
    const std::string why = silent ? "its runner fell silent" : "its runner took too long";
    const auto done = database_.Write([&]() -> Result<void> {
      ASSAY_RETURN_IF_ERROR(PutBack(job, lease, why, false, now));
      return {};
    });
    if (!done) return std::unexpected(done.error());
    times_.erase(job);
    changed.push_back(job);
  }
  return changed;
}

Result<std::vector<Leases::KeptVerdict>> Leases::NotArchived() {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT job, verdict FROM endings ORDER BY job"));
  std::vector<KeptVerdict> kept;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return kept;
    kept.push_back({select.Number(0), select.Text(1)});
  }
}

Result<void> Leases::Archived(int64_t job) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement remove,
                         database_.Prepare("DELETE FROM endings WHERE job = ?"));
  ASSAY_RETURN_IF_ERROR(remove.Bind(job).Step());
  return {};
}

}  // namespace assay
