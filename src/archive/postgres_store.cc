#include "archive/postgres_store.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "archive/postgres_schema.h"
#include "base/hash.h"
#include "base/secret.h"

namespace assay {
namespace {

constexpr size_t kTokenBytes = 16;
constexpr const char* kColumns =
    "sequence, kind, time, name, id, problem, outcome, content, source, terms, parent, hash";
// The transaction's end does not wait for the disk: a later one that does makes it durable, too.
constexpr const char* kWithoutFlush = "SELECT set_config('synchronous_commit', 'off', true)";

Record RecordOf(const PostgresRows& rows, int row) {
  Record record;
  record.sequence = rows.Number(row, 0);
  record.facts.kind = RecordKindFromName(rows.Text(row, 1)).value_or(RecordKind::kNote);
  record.time = rows.Text(row, 2);
  record.facts.name = rows.Text(row, 3);
  record.facts.id = rows.Text(row, 4);
  record.facts.problem = rows.Text(row, 5);
  record.facts.outcome = rows.Text(row, 6);
  record.content = rows.Text(row, 7);
  record.source = rows.Text(row, 8);
  record.terms = rows.Text(row, 9);
  record.parent = rows.Text(row, 10);
  record.hash = rows.Text(row, 11);
  return record;
}

std::vector<Record> RecordsOf(const PostgresRows& rows) {
  std::vector<Record> records;
  for (int row = 0; row < rows.size(); ++row) records.push_back(RecordOf(rows, row));
  return records;
}

void AddKeep(std::string_view bytes, std::vector<PostgresCommand>* commands) {
  commands->push_back({"SELECT assay.keep($1)", PostgresValues().Bytes(bytes)});
}

// Kept in the order of their hashes: two writers with the same bytes cannot wait for each other.
class KeptBytes {
 public:
  std::string Add(std::string_view bytes) {
    std::string hash = Sha256Hex(bytes);
    by_hash_.emplace(hash, bytes);
    return hash;
  }
  void AddCommands(std::vector<PostgresCommand>* commands) const {
    if (by_hash_.empty()) return;
    commands->push_back({kWithoutFlush});
    for (const auto& [hash, bytes] : by_hash_) AddKeep(bytes, commands);
    commands->back().ends_transaction = true;
  }

 private:
  std::map<std::string, std::string_view> by_hash_;
};

}  // namespace

Result<std::unique_ptr<PostgresStore>> PostgresStore::Open(const std::string& url,
                                                           PostgresSessionOptions options) {
  return OpenFor(url, std::move(options), SchemaAccess::kWrite);
}

Result<std::unique_ptr<PostgresStore>> PostgresStore::OpenToRead(const std::string& url,
                                                                 PostgresSessionOptions options) {
  return OpenFor(url, std::move(options), SchemaAccess::kRead);
}

Result<std::unique_ptr<PostgresStore>> PostgresStore::OpenFor(const std::string& url,
                                                              PostgresSessionOptions options,
                                                              SchemaAccess access) {
  ASSAY_ASSIGN_OR_RETURN(PostgresSession session, PostgresSession::Open(url, std::move(options)));
  ASSAY_RETURN_IF_ERROR(MigratePostgres(session, "archive", kPostgresArchiveMigrations, access));
  return std::unique_ptr<PostgresStore>(new PostgresStore(std::move(session), access));
}

Result<void> PostgresStore::CheckWrite() const {
  if (access_ == SchemaAccess::kWrite) return {};
  return EnvironmentError(fmt::format("{} is open for reading alone", session_.name()));
}

Result<std::string> PostgresStore::Put(std::string_view bytes) {
  ASSAY_RETURN_IF_ERROR(CheckWrite());
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows,
                         session_.Query("SELECT assay.keep($1)", PostgresValues().Bytes(bytes)));
  return rows.Text(0, 0);
}

Result<std::string> PostgresStore::Get(const std::string& hash) {
  ASSAY_ASSIGN_OR_RETURN(
      const PostgresRows rows,
      session_.Query("SELECT bytes FROM assay.blobs WHERE hash = $1", PostgresValues().Text(hash)));
  if (rows.size() == 0)
    return EnvironmentError(fmt::format("{} has no bytes of hash {}", session_.name(), hash));
  std::string bytes = rows.Text(0, 0);
  if (Sha256Hex(bytes) != hash)
    return EnvironmentError(fmt::format("the bytes of hash {} were changed", hash));
  return bytes;
}

Result<std::vector<Record>> PostgresStore::AppendOnce(PostgresConnection& connection,
                                                      std::span<const NewRecord> records,
                                                      const std::string& token, bool again) {
  if (again) {
    ASSAY_ASSIGN_OR_RETURN(
        const PostgresRows rows,
        connection.Query(fmt::format("SELECT {} FROM assay.signed_append($1)", kColumns),
                         PostgresValues().Text(token)));
    if (rows.size() > 0) return RecordsOf(rows);
  }
  const std::string append =
      fmt::format("SELECT {} FROM assay.append($1, $2, $3, $4, $5, $6, $7, $8, $9 = 1)", kColumns);
  KeptBytes bytes;
  std::vector<PostgresCommand> appends;
  for (const NewRecord& record : records) {
    PostgresValues values;
    values.Text(RecordKindName(record.facts.kind)).Bytes(record.facts.name).Bytes(record.facts.id);
    values.Bytes(record.facts.problem).Bytes(record.facts.outcome).Text(bytes.Add(record.content));
    values.Text(record.source.empty() ? "" : bytes.Add(record.source));
    values.Text(record.terms.empty() ? "" : bytes.Add(record.terms)).Number(record.once ? 1 : 0);
    appends.push_back({append, std::move(values)});
  }
  std::vector<PostgresCommand> commands;
  bytes.AddCommands(&commands);
  const size_t kept = commands.size();
  std::ranges::move(appends, std::back_inserter(commands));
  commands.push_back({"SELECT assay.sign_append($1, $2)",
                      PostgresValues().Text(token).Number(std::ssize(records))});
  ASSAY_ASSIGN_OR_RETURN(const std::vector<PostgresRows> answers, connection.Pipeline(commands));
  std::vector<Record> appended;
  for (size_t i = 0; i < records.size(); ++i) {
    if (answers[kept + i].size() == 0) continue;
    appended.push_back(RecordOf(answers[kept + i], 0));
    if (RecordHash(appended.back()) != appended.back().hash)
      return EnvironmentError(
          fmt::format("{} computes another hash of record {}: its functions were changed",
                      connection.name(), appended.back().sequence));
  }
  return appended;
}

Result<std::vector<Record>> PostgresStore::Append(std::span<const NewRecord> records) {
  ASSAY_RETURN_IF_ERROR(CheckWrite());
  if (records.empty()) return std::vector<Record>();
  ASSAY_ASSIGN_OR_RETURN(const std::string token, RandomHex(kTokenBytes));
  bool again = false;
  return session_.Do([&](PostgresConnection& connection) {
    return AppendOnce(connection, records, token, std::exchange(again, true));
  });
}

Result<std::vector<Record>> PostgresStore::Find(const RecordQuery& query) {
  PostgresValues values;
  int parameters = 1;
  std::string sql = fmt::format("SELECT {} FROM assay.records WHERE sequence > $1", kColumns);
  values.Number(query.after);
  const auto with = [&](std::string_view condition) {
    sql += fmt::format(" AND {} = ${}", condition, ++parameters);
  };
  if (query.kind) {
    with("kind");
    values.Text(RecordKindName(*query.kind));
  }
  for (const auto& [column, wanted] :
       {std::pair<std::string_view, const std::string*>{"problem", &query.problem},
        {"outcome", &query.outcome},
        {"id", &query.id}}) {
    if (wanted->empty()) continue;
    with(column);
    values.Bytes(*wanted);
  }
  if (!query.reference.empty()) {
    // Hashes are hexadecimal: 'g' follows all that begin with the same digits.
    sql += fmt::format(
        " AND sequence IN (SELECT sequence FROM assay.records WHERE hash BETWEEN ${0} AND ${1}"
        " UNION SELECT sequence FROM assay.records WHERE content BETWEEN ${0} AND ${1}"
        " UNION SELECT sequence FROM assay.records WHERE id = ${2})",
        parameters + 1, parameters + 2, parameters + 3);
    values.Text(query.reference).Text(query.reference + "g").Bytes(query.reference);
  }
  sql += query.oldest_first ? " ORDER BY sequence" : " ORDER BY sequence DESC";
  if (query.limit > 0) sql += fmt::format(" LIMIT {}", query.limit);
  ASSAY_ASSIGN_OR_RETURN(const PostgresRows rows, session_.Query(sql, values));
  return RecordsOf(rows);
}

Result<int64_t> PostgresStore::Adopt(std::span<const Record> records,
                                     std::span<const std::string> bytes) {
  ASSAY_RETURN_IF_ERROR(CheckWrite());
  if (records.empty()) return 0;
  KeptBytes kept;
  for (const std::string& each : bytes) kept.Add(each);
  std::vector<PostgresCommand> commands;
  kept.AddCommands(&commands);
  const size_t before = commands.size();
  for (const Record& record : records) {
    PostgresValues values;
    values.Number(record.sequence).Text(RecordKindName(record.facts.kind)).Text(record.time);
    values.Bytes(record.facts.name).Bytes(record.facts.id).Bytes(record.facts.problem);
    values.Bytes(record.facts.outcome).Text(record.content).Text(record.source);
    values.Text(record.terms).Text(record.parent).Text(record.hash);
    commands.push_back(
        {"SELECT assay.adopt(ROW($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12))",
         std::move(values)});
  }
  return session_.Do([&](PostgresConnection& connection) -> Result<int64_t> {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<PostgresRows> answers, connection.Pipeline(commands));
    int64_t adopted = 0;
    for (size_t i = before; i < answers.size(); ++i) adopted += answers[i].Number(0, 0);
    return adopted;
  });
}

}  // namespace assay
