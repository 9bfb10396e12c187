// PostgreSQL's connection, parameters and results as values, on libpq. One thread at a time.
//
// Every wait is bounded: one for a connection by `connect_s`, one for an answer by `answer_ms`.
// Messages name a place without its password.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct pg_conn;
struct pg_result;

namespace assay {

bool IsPostgresUrl(std::string_view place);
// The URL without its password and options. Errors (kUsage): libpq cannot read it.
Result<std::string> PostgresName(const std::string& url);

// Parameters of a command: $1, $2, ... in this order.
class PostgresValues {
 public:
  PostgresValues& Text(std::string_view text);
  PostgresValues& Bytes(std::string_view bytes);
  PostgresValues& Number(int64_t number);
  PostgresValues& Real(double number);
  PostgresValues& Texts(std::span<const std::string> texts);  // text[]
  PostgresValues& Numbers(std::span<const int64_t> numbers);  // bigint[]

 private:
  friend class PostgresConnection;
  struct Value {
    std::string bytes;
    uint32_t type = 0;  // 0: the server infers it
    bool is_binary = false;
  };
  std::vector<Value> values_;
};

// Rows of an answer. Columns count from 0; NULL is 0 or empty.
class PostgresRows {
 public:
  explicit PostgresRows(pg_result* result) : result_(result) {}

  int size() const;
  int64_t Number(int row, int column) const;  // of smallint, integer, bigint or boolean
  double Real(int row, int column) const;     // of double precision
  std::string Text(int row, int column) const;

 private:
  struct Clear {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Clear> result_;
};

struct PostgresCommand {
  std::string_view sql;
  PostgresValues values = {};
  bool ends_transaction = false;  // commands up to this one are one transaction
};

struct PostgresOptions {
  int connect_s = 10;
  int answer_ms = 60'000;
};

class PostgresConnection {
 public:
  // Errors: the URL, the role or the database is wrong (kUsage); the server cannot be reached
  // (kEnvironment).
  static Result<PostgresConnection> Open(const std::string& url, PostgresOptions options = {});

  // Statements without parameters or results. Several are one transaction, unless they say BEGIN.
  Result<void> Run(const std::string& sql);
  Result<PostgresRows> Query(std::string_view sql, const PostgresValues& values = {});
  // Sends all commands before the first answer is read. After a command that fails, those of its
  // transaction are not done; others are. Returns an answer for each, or the first error.
  Result<std::vector<PostgresRows>> Pipeline(std::span<const PostgresCommand> commands);

  Result<void> Listen(const std::string& channel);
  // Waits for a notification, at most `timeout_ms`; true if one came.
  Result<bool> WaitForNotice(int timeout_ms);

  // After an error: the connection is of no more use; a command's effect may be unknown.
  bool lost() const { return lost_; }
  // After an error: the server took another command's side, or is starting. To be tried again.
  bool passing() const { return passing_; }
  const std::string& name() const { return name_; }

 private:
  struct Finish {
    void operator()(pg_conn* connection) const;
  };
  PostgresConnection(pg_conn* connection, std::string name, PostgresOptions options)
      : handle_(connection), name_(std::move(name)), options_(options) {}

  Result<void> Send(const PostgresCommand& command);
  // The next result of the command in hand; nullptr: there are no more.
  Result<pg_result*> Next();
  Result<PostgresRows> Only();
  Result<void> Pump(bool writes, int timeout_ms, bool* timed_out);
  std::unexpected<Error> Lost(const std::string& why);
  std::unexpected<Error> Failed(const pg_result* result);

  std::unique_ptr<pg_conn, Finish> handle_;
  std::string name_;
  PostgresOptions options_;
  bool lost_ = false, passing_ = false;
};

}  // namespace assay
