#include "queue/postgres_roles.h"

#include <fmt/format.h>

#include "archive/postgres_store.h"
#include "queue/postgres_queue.h"

namespace assay {
namespace {

constexpr const char* kReaderTables = "assay.records, assay.blobs, assay.readable";
constexpr const char* kWorkerFunctions =
    "assay.queue_claim(text[], text, boolean, bigint, double precision), "
    "assay.queue_beat(text[], bigint[], bigint[], double precision), "
    "assay.queue_end(text[], bigint, bigint, text, text, boolean, bigint), "
    "assay.queue_give_back(text[], bigint[], bigint[]), assay.queue_expire(bigint)";
constexpr const char* kControllerFunctions =
    "assay.queue_add(text, text[], text[], text[], bigint[], text[]), "
    "assay.queue_ended(text, bigint, bigint), assay.queue_read_from(text, text[]), "
    "assay.queue_counts(text), assay.queue_cancel(text), "
    "assay.queue_workers(), assay.queue_drain(text, text), assay.queue_expire(bigint), "
    "assay.keep(bytea), assay.append(text, bytea, bytea, bytea, bytea, text, text, text, boolean), "
    "assay.sign_append(text, bigint), assay.signed_append(text), assay.adopt(assay.records)";

std::string GrantsFor(const std::string& role, const std::string& as) {
  std::string sql = fmt::format(
      "REVOKE ALL ON ALL TABLES IN SCHEMA assay FROM {0};"
      "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA assay FROM {0}; REVOKE ALL ON SCHEMA assay FROM {0};",
      role);
  if (as == "none") return sql;
  sql += fmt::format("GRANT USAGE ON SCHEMA assay TO {0}; GRANT SELECT ON assay.formats TO {0};",
                     role);
  if (as != "worker") sql += fmt::format("GRANT SELECT ON {} TO {};", kReaderTables, role);
  if (as == "worker")
    sql += fmt::format("GRANT EXECUTE ON FUNCTION {} TO {};", kWorkerFunctions, role);
  if (as == "controller")
    sql += fmt::format("GRANT EXECUTE ON FUNCTION {} TO {};", kControllerFunctions, role);
  return sql;
}

}  // namespace

Result<void> GrantRights(const std::string& url, const std::string& role, const std::string& as,
                         const RoleQuota& quota) {
  ASSAY_RETURN_IF_ERROR(PostgresStore::Open(url));
  ASSAY_RETURN_IF_ERROR(PostgresQueue::Open(url, {}));
  ASSAY_ASSIGN_OR_RETURN(PostgresConnection connection, PostgresConnection::Open(url));
  ASSAY_ASSIGN_OR_RETURN(
      const PostgresRows found,
      connection.Query("SELECT quote_ident(rolname) FROM pg_roles WHERE rolname = $1",
                       PostgresValues().Text(role)));
  if (found.size() == 0)
    return UsageError(
        fmt::format("there is no role {0} at {1}: make it by CREATE ROLE {0} LOGIN PASSWORD '...'",
                    role, connection.name()));
  const std::string quoted = found.Text(0, 0);
  ASSAY_RETURN_IF_ERROR(connection.Run("BEGIN;" + GrantsFor(quoted, as) + "COMMIT"));
  const auto limit = [](int64_t most) { return most > 0 ? most : INT64_MAX; };
  ASSAY_RETURN_IF_ERROR(
      connection.Query("INSERT INTO assay.quotas VALUES($1, $2, $3) ON CONFLICT (role) DO UPDATE "
                       "SET queued_max = EXCLUDED.queued_max, claimed_max = EXCLUDED.claimed_max",
                       PostgresValues()
                           .Text(role)
                           .Number(limit(quota.queued_max))
                           .Number(limit(quota.claimed_max))));
  return {};
}

}  // namespace assay
