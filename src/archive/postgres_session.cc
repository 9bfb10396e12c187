#include "archive/postgres_session.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "base/clock.h"

namespace assay {
namespace {

constexpr int kFirstPauseMs = 50, kPauseMaxMs = 2000, kLookMs = 100;
constexpr int kPassingTries = 20;
constexpr const char* kVersionTable = R"(
CREATE SCHEMA IF NOT EXISTS assay;
CREATE TABLE IF NOT EXISTS assay.formats(part text PRIMARY KEY, version bigint NOT NULL);
)";

Result<int64_t> VersionOf(PostgresSession& session, const std::string& part) {
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows table,
                         session.Query("SELECT to_regclass('assay.formats') IS NOT NULL"));
  if (table.Number(0, 0) == 0) return 0;
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows,
                         session.Query("SELECT version FROM assay.formats WHERE part = $1",
                                       PostgresValues().Text(part)));
  return rows.size() == 0 ? 0 : rows.Number(0, 0);
}

}  // namespace

Result<PostgresSession> PostgresSession::Open(const std::string& url,
                                              PostgresSessionOptions options) {
  ASSAY_ASSIGN_OR_RETURN(PostgresConnection connection,
                         PostgresConnection::Open(url, options.connection));
  return PostgresSession(url, std::move(options), std::move(connection));
}

Result<PostgresRows> PostgresSession::Query(std::string_view sql, const PostgresValues& values) {
  return Do([&](PostgresConnection& connection) { return connection.Query(sql, values); });
}

Result<void> PostgresSession::Persist(
    const std::function<Result<void>(PostgresConnection&)>& work) {
  const Deadline deadline = Deadline::AfterSeconds(options_.patience_s);
  int tries = 0;
  while (true) {
    if (options_.stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
    if (!connection_) ASSAY_RETURN_IF_ERROR(Reconnect({ErrorKind::kEnvironment, "it was lost"}));
    const auto done = work(*connection_);
    if (done) return {};
    if (connection_->lost()) {
      connection_.reset();
      if (deadline.Expired()) return done;
      ASSAY_RETURN_IF_ERROR(Reconnect(done.error()));
    } else if (!connection_->passing() || ++tries >= kPassingTries) {
      return done;
    }
  }
}

Result<void> PostgresSession::Reconnect(const Error& why) {
  const Deadline deadline = Deadline::AfterSeconds(options_.patience_s);
  bool told = false;
  for (int pause_ms = kFirstPauseMs;; pause_ms = std::min(2 * pause_ms, kPauseMaxMs)) {
    auto connection = PostgresConnection::Open(url_, options_.connection);
    if (connection) {
      connection_ = std::make_unique<PostgresConnection>(std::move(*connection));
      ++connections_;
      if (told && options_.tell) options_.tell(fmt::format("{} answers again", name_));
      return {};
    }
    if (deadline.Expired())
      return EnvironmentError(
          fmt::format("{}; tried again for {} s", connection.error().message, options_.patience_s));
    if (!std::exchange(told, true) && options_.tell)
      options_.tell(fmt::format("{}; trying again for {} s", why.message, options_.patience_s));
    const Deadline pause = Deadline::AfterSeconds(pause_ms / 1e3);
    while (!pause.Expired()) {
      if (options_.stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
      ::poll(nullptr, 0, std::min(pause.RemainingMs(), kLookMs));
    }
  }
}

Result<void> MigratePostgres(PostgresSession& session, const std::string& part,
                             std::span<const char* const> steps, SchemaAccess access) {
  const auto known = static_cast<int64_t>(steps.size());
  ASSAY_ASSIGN_OR_RETURN(int64_t version, VersionOf(session, part));
  if (version > known)
    return UsageError(
        fmt::format("the {} in {} was made by a newer version of Assay (its format is {}, and this "
                    "one knows up to {}): use that version, or another database",
                    part, session.name(), version, known));
  if (version == known) return {};
  if (access == SchemaAccess::kRead && version == 0)
    return UsageError(
        fmt::format("there is no {} in {}: record something there first, or name "
                    "another database",
                    part, session.name()));
  if (access == SchemaAccess::kRead)
    return UsageError(fmt::format(
        "the {} in {} is of an older version of Assay: recording there brings it up to date", part,
        session.name()));
  return session.Do([&](PostgresConnection& connection) -> Result<void> {
    std::string sql = "BEGIN;\nSELECT pg_advisory_xact_lock(x'41535941'::int, 0);\n";
    sql += kVersionTable;
    const auto begun = connection.Run(sql);
    auto done = begun;
    if (done) {
      // Another process may have been quicker.
      const auto rows = connection.Query("SELECT version FROM assay.formats WHERE part = $1",
                                         PostgresValues().Text(part));
      if (!rows) done = std::unexpected(rows.error());
      version = rows && rows->size() > 0 ? rows->Number(0, 0) : 0;
    }
    for (int64_t step = version; done && step < known; ++step)
      done = connection.Run(steps[static_cast<size_t>(step)]);
    if (done)
      done = connection.Run(
          fmt::format("INSERT INTO assay.formats VALUES('{0}', {1}) ON CONFLICT (part) DO UPDATE "
                      "SET version = {1}; COMMIT",
                      part, std::max(version, known)));
    if (!done && !connection.lost()) {
      const bool passing = connection.passing();
      (void)connection.Run("ROLLBACK");
      if (!passing) return done;
    }
    return done;
  });
}

}  // namespace assay
