#include "archive/postgres_testing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "archive/postgres.h"
#include "base/check.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// The newest server's programs; empty: there are none.
std::string FindPrograms() {
  std::string found;
  std::error_code code;
  int newest = 0;
  for (const auto& each : fs::directory_iterator("/usr/lib/postgresql", code)) {
    const int version = std::atoi(each.path().filename().c_str());
    if (version <= newest || !fs::exists(each.path() / "bin" / "initdb", code)) continue;
    newest = version;
    found = (each.path() / "bin").string();
  }
  return found;
}

bool RunsWell(const std::string& command) { return std::system(command.c_str()) == 0; }

}  // namespace

Result<PostgresServer*> PostgresServer::Shared() {
  static const auto server = []() -> Result<std::unique_ptr<PostgresServer>> {
    ASSAY_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::Create());
    std::unique_ptr<PostgresServer> made(new PostgresServer(std::move(folder)));
    ASSAY_RETURN_IF_ERROR(made->Make());
    return made;
  }();
  if (!server) return std::unexpected(server.error());
  return server->get();
}

// A server does not run as root: Debian's user stands in.
std::string PostgresServer::Command(const std::string& program,
                                    const std::string& arguments) const {
  const std::string as =
      ::geteuid() == 0 ? "setpriv --reuid=postgres --regid=postgres --init-groups " : "";
  return fmt::format("cd / && {}{}/{} {} >> {}/log 2>&1", as, programs_, program, arguments,
                     folder_.path().string());
}

Result<void> PostgresServer::Make() {
  programs_ = FindPrograms();
  if (programs_.empty()) return EnvironmentError("PostgreSQL's server is not installed");
  const std::string folder = folder_.path().string();
  if (::geteuid() == 0 && !RunsWell(fmt::format("chown postgres {0} && chmod 755 {0}", folder)))
    return EnvironmentError("there is no user postgres, and a server does not run as root");
  if (!RunsWell(Command("initdb", fmt::format("-D {}/data -U owner -A trust -E UTF8 -N "
                                              "--locale=C.UTF-8",
                                              folder))))
    return EnvironmentError("initdb fails");
  Start();
  return {};
}

// Without flushes: tests end processes, and the system keeps what those have written.
void PostgresServer::Start() const {
  ASSAY_CHECK(RunsWell(Command(
      "pg_ctl", fmt::format("-D {0}/data -l {0}/server.log -w -t 60 -s -o \"-c listen_addresses='' "
                            "-c unix_socket_directories={0} -c shared_buffers=64MB "
                            "-c max_connections=300 -c fsync=off\" start",
                            folder_.path().string()))));
}

void PostgresServer::Stop() const {
  (void)RunsWell(Command(
      "pg_ctl", fmt::format("-D {}/data -m immediate -w -t 60 -s stop", folder_.path().string())));
}

void PostgresServer::Crash() const {
  Stop();
  Start();
}

PostgresServer::~PostgresServer() {
  if (!programs_.empty()) Stop();
}

std::string PostgresServer::NewDatabase() {
  const auto url = [&](const std::string& database) {
    return fmt::format("postgresql://owner@/{}?host={}", database, folder_.path().string());
  };
  const std::string name = fmt::format("test_{}_{}", ::getpid(), ++databases_);
  Sql(url("postgres"), "CREATE DATABASE " + name);
  return url(name);
}

std::string PostgresServer::AsRole(const std::string& url, const std::string& role) const {
  std::string changed = url;
  return changed.replace(changed.find("owner@"), 5, role);
}

void PostgresServer::Sql(const std::string& url, const std::string& sql) const {
  auto connection = PostgresConnection::Open(url);
  ASSAY_CHECK(connection);
  ASSAY_CHECK(connection->Run("SET session_replication_role = replica"));
  const auto done = connection->Run(sql);
  if (!done) fmt::print(stderr, "{}\n", done.error().message);
  ASSAY_CHECK(done);
}

}  // namespace assay
