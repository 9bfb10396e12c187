// A connection to PostgreSQL that outlives the server's restarts: work that lost it is done again
// on a new one, for as long as the patience lasts. Also the versions of Assay's tables there.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "archive/postgres.h"
#include "base/stop_token.h"

namespace assay {

struct PostgresSessionOptions {
  double patience_s = 120;  // how long a lost connection is sought again
  StopToken stop = {};
  std::function<void(const std::string&)> tell = nullptr;  // of a lost connection, and its return
  PostgresOptions connection = {};
};

class PostgresSession {
 public:
  // Tries once: what cannot be reached at the start is rather a wrong URL.
  static Result<PostgresSession> Open(const std::string& url, PostgresSessionOptions options = {});

  // Runs `work(connection)` until it succeeds or fails by itself. It may be run again after its
  // effect was kept: it must bear that. Errors (kEnvironment): the server stayed away.
  template <typename Work>
  auto Do(const Work& work) -> std::invoke_result_t<Work, PostgresConnection&> {
    std::invoke_result_t<Work, PostgresConnection&> done =
        EnvironmentError("the connection is lost");
    ASSAY_RETURN_IF_ERROR(Persist([&](PostgresConnection& connection) -> Result<void> {
      done = work(connection);
      if (!done) return std::unexpected(done.error());
      return {};
    }));
    return done;
  }
  Result<PostgresRows> Query(std::string_view sql, const PostgresValues& values = {});

  const std::string& name() const { return name_; }
  // Changes when a connection was lost: what it had, such as LISTEN, is gone.
  int connections() const { return connections_; }

 private:
  PostgresSession(std::string url, PostgresSessionOptions options, PostgresConnection connection)
      : url_(std::move(url)),
        options_(std::move(options)),
        name_(connection.name()),
        connection_(std::make_unique<PostgresConnection>(std::move(connection))) {}

  Result<void> Persist(const std::function<Result<void>(PostgresConnection&)>& work);
  Result<void> Reconnect(const Error& why);

  std::string url_;
  PostgresSessionOptions options_;
  std::string name_;
  std::unique_ptr<PostgresConnection> connection_;  // null: lost
  int connections_ = 1;
};

enum class SchemaAccess { kWrite, kRead };

// Brings a part of Assay's tables ("archive", "queue") from its version to the newest, one step a
// transaction. With kRead only looks. Errors (kUsage): a newer version made them; they are missing
// or older, and may not be changed.
Result<void> MigratePostgres(PostgresSession& session, const std::string& part,
                             std::span<const char* const> steps, SchemaAccess access);

}  // namespace assay
