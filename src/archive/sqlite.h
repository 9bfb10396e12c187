// SQLite's connection and statements as values. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace assay {

// A prepared statement. Parameters and columns count from 1 and 0, as SQLite has them.
class SqliteStatement {
 public:
  SqliteStatement(sqlite3* database, std::string path, sqlite3_stmt* statement);

  SqliteStatement& Bind(int64_t number);
  SqliteStatement& BindReal(double number);
  SqliteStatement& Bind(std::string_view text);
  SqliteStatement& BindBytes(std::string_view bytes);
  SqliteStatement& BindNull();

  // Returns true at a row, false at the end.
  Result<bool> Step();
  int64_t Number(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;  // text or bytes; NULL: empty

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  sqlite3* database_;
  std::string path_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

enum class SqliteAccess {
  kWrite,
  kRead,
  kReadUnchanging,  // for a file that nobody can write to: without locks
};

class SqliteDatabase {
 public:
  // Errors name the file and what to do: kUsage where it is no database, else kEnvironment.
  static Result<SqliteDatabase> Open(const std::string& path, SqliteAccess access, int busy_ms);

  Result<SqliteStatement> Prepare(std::string_view sql);
  // Runs statements without parameters or results.
  Result<void> Run(const std::string& sql);
  // The first column of the first row; 0 where there is none.
  Result<int64_t> Number(std::string_view sql);
  // Moves the write-ahead log into the file and closes, so that the file stands alone. Without it
  // the log is left to the next connection.
  void FoldAndClose();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  SqliteDatabase(std::string path, sqlite3* database) : path_(std::move(path)), handle_(database) {}

  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace assay
