#include "archive/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstring>

namespace assay {
namespace {

std::unexpected<Error> Failed(sqlite3* database, const std::string& path) {
  const int code = sqlite3_errcode(database) & 0xff;
  const int system =
      sqlite3_system_errno(database);  // of the last call of the system's that failed
  const bool of_system = system != 0 && (code == SQLITE_IOERR || code == SQLITE_CANTOPEN);
  const std::string why =
      of_system ? fmt::format("{} ({})", sqlite3_errmsg(database), std::strerror(system))
                : std::string(sqlite3_errmsg(database));
  switch (of_system && system == ENOSPC ? SQLITE_FULL : code) {
    case SQLITE_NOTADB:
      return UsageError(fmt::format("{} is no archive: choose another file", path));
    case SQLITE_CORRUPT:
      return EnvironmentError(fmt::format(
          "{} is damaged: {}; put a copy of it back, or choose another file", path, why));
    case SQLITE_FULL:
      return EnvironmentError(fmt::format(
          "cannot write to {}: the disk is full; make room, or choose another file", path));
    case SQLITE_BUSY:
      return EnvironmentError(
          fmt::format("{} is in use by another program: try again when it is done", path));
    case SQLITE_READONLY:
      return EnvironmentError(fmt::format(
          "cannot write to {}: it or its folder is read-only; choose another file", path));
    case SQLITE_CANTOPEN:
      return EnvironmentError(fmt::format("cannot open {}: {}; choose another file", path, why));
    default:
      return EnvironmentError(fmt::format("cannot use {}: {}", path, why));
  }
}

// For SQLite's file: names.
std::string UriOf(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path)
    uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", c) : std::string(1, c);
  return uri + "?immutable=1";
}

}  // namespace

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteStatement::SqliteStatement(sqlite3* database, std::string path, sqlite3_stmt* statement)
    : database_(database), path_(std::move(path)), statement_(statement) {}

SqliteStatement& SqliteStatement::Bind(int64_t number) {
  sqlite3_bind_int64(statement_.get(), ++bound_, number);
  return *this;
}

SqliteStatement& SqliteStatement::BindReal(double number) {
  sqlite3_bind_double(statement_.get(), ++bound_, number);
  return *this;
}

SqliteStatement& SqliteStatement::Bind(std::string_view text) {
  sqlite3_bind_text64(statement_.get(), ++bound_, text.data() == nullptr ? "" : text.data(),
                      text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

SqliteStatement& SqliteStatement::BindBytes(std::string_view bytes) {
  sqlite3_bind_blob64(statement_.get(), ++bound_, bytes.data() == nullptr ? "" : bytes.data(),
                      bytes.size(), SQLITE_TRANSIENT);
  return *this;
}

SqliteStatement& SqliteStatement::BindNull() {
  sqlite3_bind_null(statement_.get(), ++bound_);
  return *this;
}

Result<bool> SqliteStatement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return Failed(database_, path_);
}

double SqliteStatement::Real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

int64_t SqliteStatement::Number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string SqliteStatement::Text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

void SqliteDatabase::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Result<SqliteDatabase> SqliteDatabase::Open(const std::string& path, SqliteAccess access,
                                            int busy_ms) {
  sqlite3* handle = nullptr;
  const int flags = access == SqliteAccess::kWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                   : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI;
  // A path that begins with "file:" is a path, too.
  const std::string plain = path.starts_with("file:") ? "./" + path : path;
  const std::string name = access == SqliteAccess::kReadUnchanging ? UriOf(plain) : plain;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  SqliteDatabase database(path, handle);
  if (handle == nullptr) return EnvironmentError("SQLite has no memory");
  if (code != SQLITE_OK) return Failed(handle, path);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, busy_ms);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return database;
}

Result<SqliteStatement> SqliteDatabase::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      &statement, nullptr);
  if (code != SQLITE_OK) return Failed(handle_.get(), path_);
  return SqliteStatement(handle_.get(), path_, statement);
}

Result<void> SqliteDatabase::Run(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return Failed(handle_.get(), path_);
  return {};
}

Result<int64_t> SqliteDatabase::Number(std::string_view sql) {
  ASSAY_ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  ASSAY_ASSIGN_OR_RETURN(const bool found, statement.Step());
  return found ? statement.Number(0) : 0;
}

void SqliteDatabase::FoldAndClose() {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  handle_.reset();
}

}  // namespace assay
