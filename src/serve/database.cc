#include "serve/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "serve/private_file.h"
#include "serve/serve_schema.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kBusyMs = 5000;

Result<UniqueFd> LockFolder(const std::string& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  const std::string path = folder + "/lock";
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock)
    return UsageError(
        fmt::format("cannot write to {}: {}; choose another folder", folder, std::strerror(errno)));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return UsageError(fmt::format(
        "{} is served by another process: end that one, or choose another folder", folder));
  return lock;
}

}  // namespace

Result<std::unique_ptr<Database>> Database::Open(const std::string& folder) {
  const std::string path = folder + "/serve.sqlite";
  const PrivateFiles keeps_private(path);
  ASSAY_ASSIGN_OR_RETURN(UniqueFd lock, LockFolder(folder));
  ASSAY_ASSIGN_OR_RETURN(SqliteDatabase file,
                         SqliteDatabase::Open(path, SqliteAccess::kWrite, kBusyMs));
  std::unique_ptr<Database> database(new Database(folder, std::move(lock), std::move(file)));
  ASSAY_RETURN_IF_ERROR(database->Migrate(path));
  return database;
}

Database::~Database() { database_.FoldAndClose(); }

Result<void> Database::Migrate(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const int64_t version, database_.Number("PRAGMA user_version"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t application, database_.Number("PRAGMA application_id"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t tables,
                         database_.Number("SELECT count(*) FROM sqlite_schema"));
  if (application != kServeApplicationId && (version > 0 || tables > 0))
    return UsageError(
        fmt::format("{} is a database of another program: choose another folder", path));
  const auto known = static_cast<int64_t>(kServeMigrations.size());
  if (version > known)
    return UsageError(
        fmt::format("{} was made by a newer version of Assay (its format is {}, and this one knows "
                    "up to {}): use that version, or another folder",
                    path, version, known));
  // A step may write a table anew that others refer to: references are checked after the steps.
  ASSAY_RETURN_IF_ERROR(database_.Run(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF"));
  for (auto step = static_cast<size_t>(version); step < kServeMigrations.size(); ++step) {
    const std::string sql = fmt::format(
        "BEGIN IMMEDIATE;\n{}\nPRAGMA application_id = {}; PRAGMA user_version = {};\n"
        "COMMIT",
        kServeMigrations[step], kServeApplicationId, step + 1);
    if (const auto done = database_.Run(sql); !done) {
      (void)database_.Run("ROLLBACK");
      return std::unexpected(done.error());
    }
  }
  return database_.Run("PRAGMA foreign_keys = ON");
}

Result<void> Database::Write(const std::function<Result<void>()>& work) {
  if (writing_) return work();
  ASSAY_RETURN_IF_ERROR(database_.Run("BEGIN IMMEDIATE"));
  writing_ = true;
  auto done = work();
  writing_ = false;
  if (done) done = database_.Run("COMMIT");
  if (!done) (void)database_.Run("ROLLBACK");
  return done;
}

}  // namespace assay
