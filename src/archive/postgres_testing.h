// A PostgreSQL server of a test's own, on a socket in a temporary folder.
#pragma once

#include <gtest/gtest.h>

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

// Why tests on a server are skipped; empty: they run.
inline std::string WhyNoPostgres() {
  const auto server = PostgresServer::Shared();
  return server ? "" : server.error().message;
}

// A test on a database of its own.
class OnPostgres : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto server = PostgresServer::Shared();
    if (!server) GTEST_SKIP() << server.error().message;
    server_ = *server;
    url_ = server_->NewDatabase();
  }

  PostgresServer* server_ = nullptr;
  std::string url_;
};

}  // namespace assay
