// A PostgreSQL server of a test's own, on a socket in a temporary folder.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/result.h"

namespace assay {

class PostgresServer {
 public:
  // The one of this process, which ends with it. Errors: PostgreSQL's server is not installed here.
  static Result<PostgresServer*> Shared();
  ~PostgresServer();

  // The URL of a database that nobody used before, as its owner.
  std::string NewDatabase();
  // As another role, without a password.
  std::string AsRole(const std::string& url, const std::string& role) const;
  // Runs statements as the server's owner, past all triggers.
  void Sql(const std::string& url, const std::string& sql) const;
  // Ends the server as a failure would, and starts it again.
  void Crash() const;
  void Stop() const;
  void Start() const;

 private:
  explicit PostgresServer(TemporaryFolder folder) : folder_(std::move(folder)) {}
  Result<void> Make();
  std::string Command(const std::string& program, const std::string& arguments) const;

  TemporaryFolder folder_;
  std::string programs_;
  int databases_ = 0;
};

}  // namespace assay
