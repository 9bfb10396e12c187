// The archive in one SQLite file (docs/archive.md).
//
// Theory of operation. The file is in WAL mode, and a commit is flushed to disk before it returns.
// Releases of SQLite before 3.51.3 can damage a file in WAL mode when two connections write or
// check-point at one instant. So whoever does either holds the lock of FILE.lock meanwhile: many
// processes may have the archive open, one at a time changes it. Readers never check-point. Rows
// are never changed or taken out: triggers refuse it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "archive/sqlite.h"
#include "archive/store.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace assay {

struct SqliteStoreOptions {
  int busy_ms = 5000;  // how long to wait while another process writes
  std::function<std::string()> now = UtcTimestamp;
};

class SqliteStore : public Store {
 public:
  // Makes the file and its folder where they are missing, and migrates an older one. Errors: the
  // file is no archive, is another program's, or was made by a newer version (kUsage); it cannot be
  // written to (kEnvironment).
  static Result<std::unique_ptr<SqliteStore>> Open(const std::string& path,
                                                   SqliteStoreOptions options = {});
  // For reading alone: works on a read-only disk, too. A missing file is an error (kUsage).
  static Result<std::unique_ptr<SqliteStore>> OpenToRead(const std::string& path,
                                                         SqliteStoreOptions options = {});
  ~SqliteStore() override;

  Result<std::string> Put(std::string_view bytes) override;
  Result<std::string> Get(const std::string& hash) override;
  Result<std::vector<Record>> Append(std::span<const NewRecord> records) override;
  Result<std::vector<Record>> Find(const RecordQuery& query) override;
  Result<int64_t> Adopt(std::span<const Record> records,
                        std::span<const std::string> bytes) override;

 private:
  class Turn;  // holds the lock while it lives

  SqliteStore(std::string path, SqliteStoreOptions options, UniqueFd lock, SqliteDatabase database)
      : path_(std::move(path)),
        options_(std::move(options)),
        lock_(std::move(lock)),
        database_(std::move(database)) {}

  Result<void> CheckSchema();
  Result<void> Migrate();
  // Runs `work` in one transaction, while no other process writes.
  Result<void> Write(const std::function<Result<void>()>& work);
  Result<void> KeepBytes(std::string_view bytes, std::string* hash);
  Result<bool> Has(const NewRecord& record, const std::string& content);
  Result<void> Add(const NewRecord& added, Record* last, std::vector<Record>* appended);
  Result<void> AddAll(std::span<const NewRecord> records, std::vector<Record>* appended);
  Result<void> Insert(const Record& record);
  Result<Record> Last();
  Result<int64_t> AdoptAll(std::span<const Record> records, std::span<const std::string> bytes);

  std::string path_;
  SqliteStoreOptions options_;
  UniqueFd lock_;  // of FILE.lock; none: opened for reading
  SqliteDatabase database_;
};

}  // namespace assay
