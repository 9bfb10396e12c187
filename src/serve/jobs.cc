#include "serve/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "serve/words.h"

namespace assay {
namespace {

constexpr int64_t kDayS = 24 * 3600;
// Of jobs that members asked for, which count towards quotas.
constexpr const char* kAsked = "kind NOT IN ('finalist', 'spot_check')";
// Jobs that are cancelled at once would fill the disk otherwise.
constexpr int64_t kSentForEachMade = 4;
constexpr int kRetryQueueS = 30, kRetryQuotaS = 600;

std::string SettingsText(const NewJob& asked) { return nlohmann::json(asked.set).dump(); }

// All that makes two requests the same.
std::string RequestHash(const NewJob& asked) {
  return Sha256Hex(nlohmann::json{{"kind", JobKindName(asked.kind)},
                                  {"problem", asked.problem},
                                  {"size", asked.size},
                                  {"set", asked.set},
                                  {"name", asked.name},
                                  {"source", asked.source_hash},
                                  {"opponent", asked.opponent_hash}}
                       .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Submitted Refusal(Submission result, std::string why, int retry_after_s) {
  Submitted refused;
  refused.result = result;
  refused.why = std::move(why);
  refused.retry_after_s = retry_after_s;
  return refused;
}

}  // namespace

std::string DeviceNeededBy(const std::string& name) {
  if (name.ends_with(".cu")) return "cuda";
  return name.ends_with(".py") ? "" : "cpu";
}

Result<std::optional<Submitted>> Jobs::FindKey(const NewJob& asked,
                                               const std::string& request_hash) {
  if (asked.key.empty()) return std::nullopt;
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT id, request_hash FROM jobs WHERE account = ? AND client_key = ?"));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(asked.author.id).Bind(asked.key).Step());
  if (!found) return std::nullopt;
  if (select.Text(1) != request_hash)
    return Refusal(Submission::kKeyReused,
                   "this key was used for another request: give each request its own", 0);
  Submitted known;
  known.result = Submission::kKnown;
  ASSAY_ASSIGN_OR_RETURN(const auto job, Find(select.Number(0)));
  if (job) known.job = *job;
  return known;
}

Result<std::optional<Submitted>> Jobs::Refuse(const NewJob& asked, const QueueLimits& limits,
                                              Instant now) {
  ASSAY_ASSIGN_OR_RETURN(const int64_t queued,
                         database_.Number("SELECT count(*) FROM jobs WHERE state = 'queued'"));
  if (queued >= limits_.queued_max)
    return Refusal(
        Submission::kQueueFull,
        fmt::format("{} jobs wait, which is all that the queue holds: try again later", queued),
        kRetryQueueS);
  if (asked.kind == JobKind::kFinalist || asked.kind == JobKind::kSpotCheck) return std::nullopt;
  ASSAY_ASSIGN_OR_RETURN(const AccountFacts account, OfAccount(asked.author.id, now));
  if (account.unended >= limits.queued_by_account_max)
    return Refusal(Submission::kQuotaSpent,
                   fmt::format("{} of your jobs have not ended, which is all that an account may "
                               "have: wait for one, or cancel one",
                               account.unended),
                   kRetryQueueS);
  if (account.made_today >= limits.made_a_day_max ||
      account.sent_today >= kSentForEachMade * limits.made_a_day_max)
    return Refusal(Submission::kQuotaSpent,
                   fmt::format("your quota of {} jobs in 24 hours is spent: try again later",
                               limits.made_a_day_max),
                   kRetryQuotaS);
  return std::nullopt;
}

Result<Jobs::AccountFacts> Jobs::OfAccount(int64_t account, Instant now) {
  // A day that begins after this one counts, too: the clock may have been set back.
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare(
          fmt::format("SELECT count(*) FILTER (WHERE state IN ('queued', 'running')),"
                      " count(*) FILTER (WHERE abs(made_s - ?2) < ?3 AND state <> 'cancelled'),"
                      " count(*) FILTER (WHERE abs(made_s - ?2) < ?3)"
                      " FROM jobs WHERE account = ?1 AND {}",
                      kAsked)));
  ASSAY_RETURN_IF_ERROR(select.Bind(account).Bind(now.utc_s).Bind(kDayS).Step());
  return AccountFacts{select.Number(0), select.Number(1), select.Number(2)};
}

Result<int64_t> Jobs::Insert(const NewJob& asked, const std::string& request_hash, Instant now) {
  const bool takes_turn = asked.kind != JobKind::kSpotCheck;
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement tag,
      database_.Prepare(fmt::format(
          "{} max(last_tag + 1, coalesce((SELECT number FROM settings"
          " WHERE name = 'taken tag'), 0)) {}",
          takes_turn ? "UPDATE accounts SET last_tag =" : "SELECT",
          takes_turn ? "WHERE id = ? RETURNING last_tag" : "FROM accounts WHERE id = ?")));
  ASSAY_ASSIGN_OR_RETURN(const bool known, tag.Bind(asked.author.id).Step());
  if (!known) return UsageError("there is no such account");
  const int64_t own_tag = tag.Number(0);
  ASSAY_RETURN_IF_ERROR(tag.Step());
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare(
          "INSERT INTO jobs(kind, state, account, problem, size, settings, name, source, opponent,"
          " opponent_name, needs, client_key, request_hash, tag, made_s)"
          " VALUES(?, 'queued', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"));
  insert.Bind(JobKindName(asked.kind)).Bind(asked.author.id).Bind(asked.problem).Bind(asked.size);
  insert.Bind(SettingsText(asked)).Bind(asked.name).Bind(asked.source_hash);
  insert.Bind(asked.opponent_hash).Bind(asked.opponent_name);
  insert.Bind(asked.needs.empty() ? DeviceNeededBy(asked.name) : asked.needs);
  insert.Bind(asked.key).Bind(request_hash).Bind(own_tag).Bind(now.utc_s);
  ASSAY_RETURN_IF_ERROR(insert.Step());
  const int64_t id = insert.Number(0);
  ASSAY_RETURN_IF_ERROR(insert.Step());
  ASSAY_RETURN_IF_ERROR(AddJobEvent(database_, id, now, R"({"event":"queued"})"));
  return id;
}

Result<Submitted> Jobs::Submit(const NewJob& asked, const QueueLimits& limits, Instant now,
                               const std::function<Result<void>()>& keep) {
  const std::string request_hash = RequestHash(asked);
  Submitted submitted;
  int64_t id = 0;
  const auto done = database_.Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(auto known, FindKey(asked, request_hash));
    if (!known) {
      ASSAY_ASSIGN_OR_RETURN(known, Refuse(asked, limits, now));
    }
    if (known) {
      submitted = std::move(*known);
      return {};
    }
    if (keep) ASSAY_RETURN_IF_ERROR(keep());
    ASSAY_ASSIGN_OR_RETURN(id, Insert(asked, request_hash, now));
    return {};
  });
  if (!done) return std::unexpected(done.error());
  if (id == 0) return submitted;
  ASSAY_ASSIGN_OR_RETURN(const auto job, Find(id));
  if (job) submitted.job = *job;
  return submitted;
}

Result<std::vector<Job>> Jobs::List(const JobQuery& query) {
  std::string sql = fmt::format("SELECT {} WHERE 1", kJobColumns);
  if (query.account != 0) sql += " AND jobs.account = ?";
  if (query.state) sql += " AND jobs.state = ?";
  if (query.unended) sql += " AND jobs.state IN ('queued', 'running')";
  if (query.before != 0) sql += " AND jobs.id < ?";
  sql +=
      query.state == JobState::kQueued ? " ORDER BY jobs.tag, jobs.id" : " ORDER BY jobs.id DESC";
  sql += " LIMIT ?";
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select, database_.Prepare(sql));
  if (query.account != 0) select.Bind(query.account);
  if (query.state) select.Bind(JobStateName(*query.state));
  if (query.before != 0) select.Bind(query.before);
  select.Bind(query.limit);
  return ReadJobs(select);
}

Result<bool> Jobs::Cancel(int64_t id, Instant now) {
  bool cancelled = false;
  const auto done = database_.Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(
        SqliteStatement update,
        database_.Prepare("UPDATE jobs SET state = 'cancelled', lease = '', ended_s = max(?, 1)"
                          " WHERE id = ? AND state IN ('queued', 'running') RETURNING id"));
    ASSAY_ASSIGN_OR_RETURN(cancelled, update.Bind(now.utc_s).Bind(id).Step());
    if (!cancelled) return {};
    ASSAY_RETURN_IF_ERROR(update.Step());
    ASSAY_RETURN_IF_ERROR(
        AddJobEvent(database_, id, now, R"({"event":"ended","state":"cancelled"})"));
    return {};
  });
  if (!done) return std::unexpected(done.error());
  return cancelled;
}

Result<Jobs::QueueFacts> Jobs::Queue() {
  QueueFacts facts;
  ASSAY_ASSIGN_OR_RETURN(facts.queued,
                         database_.Number("SELECT count(*) FROM jobs WHERE state = 'queued'"));
  ASSAY_ASSIGN_OR_RETURN(facts.running,
                         database_.Number("SELECT count(*) FROM jobs WHERE state = 'running'"));
  return facts;
}

}  // namespace assay
