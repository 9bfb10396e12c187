#include "archive/sqlite_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "archive/sqlite_schema.h"
#include "base/hash.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kLookMs = 2;
// Hashes are written all over the file: the longer the log, the more of them share a page's way
// back into it.
constexpr int kLogPages = 8192, kCacheKib = 65536;
constexpr const char* kColumns =
    "sequence, kind, time, name, id, problem, outcome, content, source, terms, parent, hash";

Record RecordOf(const SqliteStatement& row) {
  Record record;
  record.sequence = row.Number(0);
  record.facts.kind = RecordKindFromName(row.Text(1)).value_or(RecordKind::kNote);
  record.time = row.Text(2);
  record.facts.name = row.Text(3);
  record.facts.id = row.Text(4);
  record.facts.problem = row.Text(5);
  record.facts.outcome = row.Text(6);
  record.content = row.Text(7);
  record.source = row.Text(8);
  record.terms = row.Text(9);
  record.parent = row.Text(10);
  record.hash = row.Text(11);
  return record;
}

// The file's name without links: all that write to it must meet at one lock.
std::string WithoutLinks(const std::string& path) {
  std::error_code code;
  const fs::path plain = fs::weakly_canonical(path, code);
  return code || plain.empty() ? path : plain.string();
}

Error ForeignError(const std::string& path, std::string_view what) {
  return {ErrorKind::kUsage,
          fmt::format("{} is no archive of Assay's, but {}: choose another file", path, what)};
}

// Looks at the file before anything is made beside it. A file that is missing or empty passes.
Result<void> CheckHeader(const std::string& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) return std::unexpected(ForeignError(path, "a folder"));
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && errno == ENOENT) return {};
  unsigned char header[100] = {};
  const ssize_t size = file ? ::read(file.get(), header, sizeof header) : -1;
  if (size < 0)
    return EnvironmentError(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  if (!fs::is_regular_file(path, code))
    return std::unexpected(ForeignError(path, "a device or a pipe"));
  if (size == 0) return {};
  if (size < std::ssize(header) || std::memcmp(header, "SQLite format 3", 16) != 0)
    return std::unexpected(ForeignError(path, "something else"));
  int64_t application = 0;
  for (size_t i = 68; i < 72; ++i) application = application * 256 + header[i];
  if (application != kArchiveApplicationId)
    return std::unexpected(ForeignError(path, "a database of another program"));
  return {};
}

Result<UniqueFd> OpenLock(const std::string& path) {
  std::error_code code;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty())
    fs::create_directories(folder, code);
  UniqueFd lock(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock)
    return EnvironmentError(
        fmt::format("cannot write to {}: its lock {}.lock: {}; choose another "
                    "file",
                    path, path, std::strerror(errno)));
  return lock;
}

}  // namespace

// Errors (kEnvironment): another process has held the lock for `busy_ms`.
class SqliteStore::Turn {
 public:
  static Result<Turn> Take(const std::string& path, int lock, int busy_ms) {
    const Deadline deadline = Deadline::AfterSeconds(busy_ms / 1e3);
    while (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR)
        return EnvironmentError(fmt::format("cannot lock {}.lock: {}", path, std::strerror(errno)));
      if (deadline.Expired())
        return EnvironmentError(
            fmt::format("{} is in use: another process has been writing to it for {} s; try again "
                        "when it is done, or choose another file",
                        path, busy_ms / 1e3));
      ::poll(nullptr, 0, kLookMs);
    }
    return Turn(lock);
  }
  Turn(Turn&& other) noexcept : lock_(std::exchange(other.lock_, -1)) {}
  Turn& operator=(Turn&&) = delete;
  ~Turn() {
    if (lock_ >= 0) ::flock(lock_, LOCK_UN);
  }

 private:
  explicit Turn(int lock) : lock_(lock) {}
  int lock_;
};

Result<std::unique_ptr<SqliteStore>> SqliteStore::Open(const std::string& given,
                                                       SqliteStoreOptions options) {
  const std::string path = WithoutLinks(given);
  ASSAY_RETURN_IF_ERROR(CheckHeader(path));
  ASSAY_ASSIGN_OR_RETURN(UniqueFd lock, OpenLock(path));
  ASSAY_ASSIGN_OR_RETURN(const Turn turn, Turn::Take(path, lock.get(), options.busy_ms));
  ASSAY_ASSIGN_OR_RETURN(SqliteDatabase database,
                         SqliteDatabase::Open(path, SqliteAccess::kWrite, options.busy_ms));
  std::unique_ptr<SqliteStore> store(
      new SqliteStore(path, std::move(options), std::move(lock), std::move(database)));
  ASSAY_RETURN_IF_ERROR(store->CheckSchema());
  // The id stands in the file before there is a log: CheckHeader reads the file alone.
  ASSAY_RETURN_IF_ERROR(
      store->database_.Run(fmt::format("PRAGMA application_id = {}; PRAGMA journal_mode = WAL;"
                                       "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
                                       "PRAGMA wal_autocheckpoint = {}; PRAGMA cache_size = -{}",
                                       kArchiveApplicationId, kLogPages, kCacheKib)));
  ASSAY_RETURN_IF_ERROR(store->Migrate());
  return store;
}

Result<std::unique_ptr<SqliteStore>> SqliteStore::OpenToRead(const std::string& path,
                                                             SqliteStoreOptions options) {
  std::error_code code;
  if (!fs::exists(path, code))
    return UsageError(fmt::format(
        "there is no archive {}: judge a candidate first, or give --archive FILE", path));
  ASSAY_RETURN_IF_ERROR(CheckHeader(path));
  for (const SqliteAccess access : {SqliteAccess::kRead, SqliteAccess::kReadUnchanging}) {
    ASSAY_ASSIGN_OR_RETURN(SqliteDatabase database,
                           SqliteDatabase::Open(path, access, options.busy_ms));
    std::unique_ptr<SqliteStore> store(
        new SqliteStore(path, options, UniqueFd(), std::move(database)));
    const auto checked = store->CheckSchema();
    if (checked) return store;
    // A file in WAL mode is not read where its log cannot be made, unless nobody can change it.
    const bool has_log = fs::exists(path + "-wal", code) && fs::file_size(path + "-wal", code) > 0;
    if (access == SqliteAccess::kReadUnchanging || has_log ||
        checked.error().kind == ErrorKind::kUsage || ::access(path.c_str(), R_OK) != 0)
      return std::unexpected(checked.error());
  }
  return EnvironmentError(fmt::format("cannot open {}", path));
}

SqliteStore::~SqliteStore() {
  if (!lock_) return;
  const auto turn = Turn::Take(path_, lock_.get(), options_.busy_ms);
  if (turn) database_.FoldAndClose();
}

Result<void> SqliteStore::CheckSchema() {
  ASSAY_ASSIGN_OR_RETURN(const int64_t version, database_.Number("PRAGMA user_version"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t tables,
                         database_.Number("SELECT count(*) FROM sqlite_schema"));
  if (version == 0 && tables > 0)
    return std::unexpected(ForeignError(path_, "a database of another program"));
  const auto known = static_cast<int64_t>(kArchiveMigrations.size());
  if (version > known)
    return UsageError(
        fmt::format("{} was made by a newer version of Assay (its format is {}, and "
                    "this one knows up to {}): use that version, or another file",
                    path_, version, known));
  if (version < known && !lock_)
    return UsageError(fmt::format(
        "{} is empty, or of an older version of Assay: recording a judgement brings it up to date",
        path_));
  return {};
}

Result<void> SqliteStore::Migrate() {
  ASSAY_ASSIGN_OR_RETURN(const int64_t version, database_.Number("PRAGMA user_version"));
  for (size_t step = static_cast<size_t>(version); step < kArchiveMigrations.size(); ++step) {
    std::string sql = "BEGIN IMMEDIATE;\n";
    sql += kArchiveMigrations[step];
    sql += fmt::format("PRAGMA user_version = {};\nCOMMIT", step + 1);
    if (const auto done = database_.Run(sql); !done) {
      (void)database_.Run("ROLLBACK");
      return std::unexpected(done.error());
    }
  }
  return {};
}

Result<void> SqliteStore::Write(const std::function<Result<void>()>& work) {
  if (!lock_) return EnvironmentError(fmt::format("{} is open for reading alone", path_));
  ASSAY_ASSIGN_OR_RETURN(const Turn turn, Turn::Take(path_, lock_.get(), options_.busy_ms));
  ASSAY_RETURN_IF_ERROR(database_.Run("BEGIN IMMEDIATE"));
  auto done = work();
  if (done) done = database_.Run("COMMIT");
  if (!done) (void)database_.Run("ROLLBACK");
  return done;
}

Result<void> SqliteStore::KeepBytes(std::string_view bytes, std::string* hash) {
  *hash = Sha256Hex(bytes);
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare("INSERT INTO blobs(hash, bytes) SELECT ?1, ?2 "
                        "WHERE NOT EXISTS(SELECT 1 FROM blobs WHERE hash = ?1)"));
  ASSAY_RETURN_IF_ERROR(insert.Bind(*hash).BindBytes(bytes).Step());
  return {};
}

Result<std::string> SqliteStore::Put(std::string_view bytes) {
  std::string hash;
  ASSAY_RETURN_IF_ERROR(Write([&] { return KeepBytes(bytes, &hash); }));
  return hash;
}

Result<std::string> SqliteStore::Get(const std::string& hash) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select,
                         database_.Prepare("SELECT bytes FROM blobs WHERE hash = ?1"));
  ASSAY_ASSIGN_OR_RETURN(const bool found, select.Bind(hash).Step());
  if (!found) return EnvironmentError(fmt::format("{} has no bytes of hash {}", path_, hash));
  std::string bytes = select.Text(0);
  if (Sha256Hex(bytes) != hash)
    return EnvironmentError(fmt::format("the bytes of hash {} were changed", hash));
  return bytes;
}

Result<bool> SqliteStore::Has(const NewRecord& record, const std::string& content) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement select,
      database_.Prepare("SELECT 1 FROM records WHERE content = ?1 AND kind = ?2 LIMIT 1"));
  return select.Bind(content).Bind(RecordKindName(record.facts.kind)).Step();
}

Result<void> SqliteStore::Insert(const Record& record) {
  ASSAY_ASSIGN_OR_RETURN(
      SqliteStatement insert,
      database_.Prepare(fmt::format(
          "INSERT INTO records({}) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
          kColumns)));
  insert.Bind(record.sequence).Bind(RecordKindName(record.facts.kind)).Bind(record.time);
  insert.Bind(record.facts.name).Bind(record.facts.id).Bind(record.facts.problem);
  insert.Bind(record.facts.outcome).Bind(record.content);
  for (const std::string* hash : {&record.source, &record.terms})
    hash->empty() ? insert.BindNull() : insert.Bind(*hash);
  ASSAY_RETURN_IF_ERROR(insert.Bind(record.parent).Bind(record.hash).Step());
  return {};
}

Result<void> SqliteStore::Add(const NewRecord& added, Record* last, std::vector<Record>* appended) {
  Record record;
  record.facts = added.facts;
  ASSAY_RETURN_IF_ERROR(KeepBytes(added.content, &record.content));
  if (added.once) {
    ASSAY_ASSIGN_OR_RETURN(const bool known, Has(added, record.content));
    if (known) return {};
  }
  if (!added.source.empty()) ASSAY_RETURN_IF_ERROR(KeepBytes(added.source, &record.source));
  if (!added.terms.empty()) ASSAY_RETURN_IF_ERROR(KeepBytes(added.terms, &record.terms));
  record.sequence = last->sequence + 1;
  record.time = options_.now();
  record.parent = last->hash;
  record.hash = RecordHash(record);
  ASSAY_RETURN_IF_ERROR(Insert(record));
  *last = record;
  appended->push_back(std::move(record));
  return {};
}

// Of an empty store: one that the first record continues.
Result<Record> SqliteStore::Last() {
  RecordQuery newest;
  newest.limit = 1;
  ASSAY_ASSIGN_OR_RETURN(std::vector<Record> found, Find(newest));
  if (!found.empty()) return std::move(found.front());
  Record none;
  none.hash = kFirstParent;
  return none;
}

Result<void> SqliteStore::AddAll(std::span<const NewRecord> records,
                                 std::vector<Record>* appended) {
  ASSAY_ASSIGN_OR_RETURN(Record last, Last());
  for (const NewRecord& record : records) ASSAY_RETURN_IF_ERROR(Add(record, &last, appended));
  return {};
}

Result<std::vector<Record>> SqliteStore::Append(std::span<const NewRecord> records) {
  std::vector<Record> appended;
  ASSAY_RETURN_IF_ERROR(Write([&] { return AddAll(records, &appended); }));
  return appended;
}

Result<int64_t> SqliteStore::AdoptAll(std::span<const Record> records,
                                      std::span<const std::string> bytes) {
  std::string hash;
  for (const std::string& each : bytes) ASSAY_RETURN_IF_ERROR(KeepBytes(each, &hash));
  ASSAY_ASSIGN_OR_RETURN(Record last, Last());
  int64_t adopted = 0;
  for (const Record& record : records) {
    if (RecordHash(record) != record.hash)
      return UsageError(fmt::format("{}: record {} was changed", path_, record.sequence));
    if (record.sequence <= last.sequence) {
      RecordQuery same;
      same.after = record.sequence - 1;
      same.oldest_first = true;
      same.limit = 1;
      ASSAY_ASSIGN_OR_RETURN(const std::vector<Record> found, Find(same));
      if (!found.empty() && found.front().hash == record.hash) continue;
    }
    if (record.sequence != last.sequence + 1 || record.parent != last.hash)
      return UsageError(
          fmt::format("{}: record {} does not continue this archive", path_, record.sequence));
    ASSAY_RETURN_IF_ERROR(Insert(record));
    last = record;
    ++adopted;
  }
  return adopted;
}

Result<int64_t> SqliteStore::Adopt(std::span<const Record> records,
                                   std::span<const std::string> bytes) {
  int64_t adopted = 0;
  ASSAY_RETURN_IF_ERROR(Write([&]() -> Result<void> {
    ASSAY_ASSIGN_OR_RETURN(adopted, AdoptAll(records, bytes));
    return {};
  }));
  return adopted;
}

Result<std::vector<Record>> SqliteStore::Find(const RecordQuery& query) {
  // Not `sequence > ?`: to seek that, SQLite reads the page of the record before, which may be
  // damaged.
  std::string sql = fmt::format("SELECT {} FROM records WHERE sequence >= ? + 1", kColumns);
  if (query.kind) sql += " AND kind = ?";
  if (!query.problem.empty()) sql += " AND problem = ?";
  if (!query.outcome.empty()) sql += " AND outcome = ?";
  if (!query.id.empty()) sql += " AND id = ?";
  // Hashes are hexadecimal: 'g' follows all that begin with the same digits. Each part of the union
  // has its index.
  if (!query.reference.empty())
    sql +=
        " AND sequence IN (SELECT sequence FROM records WHERE hash BETWEEN ? AND ?"
        " UNION SELECT sequence FROM records WHERE content BETWEEN ? AND ?"
        " UNION SELECT sequence FROM records WHERE id = ?)";
  sql += query.oldest_first ? " ORDER BY sequence" : " ORDER BY sequence DESC";
  sql += " LIMIT ?";
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement select, database_.Prepare(sql));
  select.Bind(query.after);
  if (query.kind) select.Bind(RecordKindName(*query.kind));
  if (!query.problem.empty()) select.Bind(query.problem);
  if (!query.outcome.empty()) select.Bind(query.outcome);
  if (!query.id.empty()) select.Bind(query.id);
  if (!query.reference.empty()) {
    const std::string end = query.reference + "g";
    select.Bind(query.reference).Bind(end).Bind(query.reference).Bind(end).Bind(query.reference);
  }
  select.Bind(query.limit > 0 ? query.limit : int64_t{-1});
  std::vector<Record> records;
  while (true) {
    ASSAY_ASSIGN_OR_RETURN(const bool found, select.Step());
    if (!found) return records;
    records.push_back(RecordOf(select));
  }
}

}  // namespace assay
