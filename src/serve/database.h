// A server's folder: its lock, and the SQLite file with accounts, jobs and classes.
//
// One process has the folder, by a lock on FOLDER/lock, and one connection, so that commits and
// checkpoints never meet. A commit is on disk before it returns. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "archive/sqlite.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

class Database {
 public:
  // Makes the folder (mode 0700) and the file where they are missing, and migrates an older one.
  // Errors: another process serves the folder, the file is another program's or was made by a newer
  // version (kUsage); it cannot be written to (kEnvironment).
  static Result<std::unique_ptr<Database>> Open(const std::string& folder);
  ~Database();

  const std::string& folder() const { return folder_; }
  Result<SqliteStatement> Prepare(std::string_view sql) { return database_.Prepare(sql); }
  Result<int64_t> Number(std::string_view sql) { return database_.Number(sql); }
  // Runs `work` in one transaction: all of it is kept, or after an error nothing. Within another
  // Write it is a part of that one.
  Result<void> Write(const std::function<Result<void>()>& work);

 private:
  Database(std::string folder, UniqueFd lock, SqliteDatabase database)
      : folder_(std::move(folder)), lock_(std::move(lock)), database_(std::move(database)) {}
  Result<void> Migrate(const std::string& path);

  std::string folder_;
  UniqueFd lock_;
  SqliteDatabase database_;
  bool writing_ = false;
};

}  // namespace assay
