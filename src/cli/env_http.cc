// Theory of operation. The library's threads read requests and check the token; a lock passes
// them on one at a time. The token is compared by its SHA-256, all of it, so that the time of a
// refusal tells nothing of it. Names other than the loopback's in `Host` are refused: a web page
// whose name was pointed here has another one.
#include "cli/env_http.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "toolchain/lines.h"

namespace assay {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr size_t kBodyBytesMax = 64 << 20;
constexpr size_t kTokenDigits = 32;
constexpr size_t kThreads = 4;
constexpr int kLookMs = 100;
constexpr int kReadTimeoutS = 30;

bool IsEqual(const std::string& one, const std::string& other) {
  if (one.size() != other.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < one.size(); ++i)
    difference |= static_cast<unsigned char>(one[i] ^ other[i]);
  return difference == 0;
}

void Answer(httplib::Response& response, int status, const std::string& event) {
  response.status = status;
  response.set_content(event, "application/json");
}

std::string ErrorText(const std::string& message) {
  return nlohmann::ordered_json{
      {"id", ""}, {"event", "error"}, {"kind", "usage"}, {"message", message}}
      .dump();
}

// A refusal: the status, and what to do.
bool Refused(const httplib::Request& request, httplib::Response& response,
             const std::string& token_hash, int port) {
  const std::string host = request.get_header_value("Host");
  if (host != fmt::format("{}:{}", kLoopback, port) && host != fmt::format("localhost:{}", port)) {
    Answer(response, 403, ErrorText("this address serves the loopback interface alone"));
    return true;
  }
  constexpr std::string_view kScheme = "Bearer ";
  const std::string given = request.get_header_value("Authorization");
  if (!given.starts_with(kScheme) ||
      !IsEqual(Sha256Hex(given.substr(kScheme.size())), token_hash)) {
    response.set_header("WWW-Authenticate", "Bearer");
    Answer(response, 401, ErrorText("send the token of --token-file as Authorization: Bearer"));
    return true;
  }
  return false;
}

int StatusOf(const std::string& event) {
  const auto json = nlohmann::json::parse(event, nullptr, false);
  if (!json.is_object() || json.value("event", "") != "error") return 200;
  return json.value("kind", "") == "usage" ? 400 : 503;
}

}  // namespace

Result<void> ServeEnvHttp(const EnvHttpTerms& terms, const std::atomic<bool>& interrupted,
                          const std::function<void(int port)>& listens) {
  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kBodyBytesMax);
  server.set_read_timeout(kReadTimeoutS, 0);
  const std::string token_hash = Sha256Hex(terms.token);
  int port = 0;
  std::mutex one_at_a_time;
  server.set_pre_routing_handler([&](const auto& request, auto& response) {
    return Refused(request, response, token_hash, port)
               ? httplib::Server::HandlerResponse::Handled
               : httplib::Server::HandlerResponse::Unhandled;
  });
  server.Get("/ready", [&](const httplib::Request&, httplib::Response& response) {
    Answer(response, 200, terms.ready);
  });
  server.Post("/", [&](const httplib::Request& request, httplib::Response& response) {
    const std::scoped_lock lock(one_at_a_time);
    const std::string event = terms.handle(request.body);
    Answer(response, StatusOf(event), event);
  });
  server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (response.body.empty())
      response.set_content(ErrorText("POST requests to /, and GET /ready"), "application/json");
  });
  port = terms.port == 0 ? server.bind_to_any_port(kLoopback)
                         : (server.bind_to_port(kLoopback, terms.port) ? terms.port : -1);
  if (port <= 0)
    return UsageError(
        fmt::format("--http {}: the port is not free; give another one, or 0 for any", terms.port));
  listens(port);
  std::atomic<bool> over = false;
  std::thread watcher([&] {
    // Again and again: a stop before the server listens does nothing.
    for (; !over; ::poll(nullptr, 0, kLookMs))
      if (interrupted || terms.ended()) server.stop();
  });
  server.listen_after_bind();
  over = true;
  watcher.join();
  if (interrupted) return Fail(ErrorKind::kInterrupted, "interrupted");
  return {};
}

Result<std::string> EnvToken(const std::string& path) {
  constexpr size_t kFileBytesMax = 1024;
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) {
    if ((facts.st_mode & 077) != 0)
      return UsageError(
          fmt::format("others may read {}: chmod 600 it, and choose a new token", path));
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
    const std::string token(TrimSpace(std::string_view(text).substr(0, text.find('\n'))));
    if (token.size() < kTokenDigits)
      return UsageError(
          fmt::format("{} has no token of at least {} characters: remove it, and it is made anew",
                      path, kTokenDigits));
    return token;
  }
  unsigned char bytes[kTokenDigits / 2];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    return EnvironmentError("the operating system gives no random bytes");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const std::string line = token + "\n";
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return UsageError(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
  return token;
}

}  // namespace assay
