// A server of HTTP/1.1 on the loopback interface, for programs and pages of this machine's user.
// The library (Boost.Beast) is in server.cc alone, since it takes long to compile.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace assay {

struct ServedRequest {
  std::string method;                          // "GET"
  std::string target;                          // "/runs?by=name", as sent
  std::map<std::string, std::string> headers;  // names in lower case; of repeated ones the first
  std::string body;

  // Empty if it is missing.
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct ServedReply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

struct ServerLimits {
  size_t header_bytes_max = size_t{16} << 10;
  size_t body_bytes_max = size_t{64} << 20;
  size_t connections_max = 64;  // further ones wait
  size_t handlers = 4;          // requests that are worked on at a time
  int idle_ms = 30'000;         // a peer that neither sends nor reads for so long is cut off
};

// Calls come from one thread at a time, unless said otherwise.
struct ServerHandlers {
  // Looks at a request before its body is read; a reply ends it.
  std::function<std::optional<ServedReply>(const ServedRequest&)> refuse =
      [](const ServedRequest&) { return std::nullopt; };
  // Answers it. Calls come from several threads at a time.
  std::function<ServedReply(const ServedRequest&)> answer;
  // The text of a refusal by the server itself: a body too large, a request that is none.
  std::function<ServedReply(int status, const std::string& why)> fault;
  // Once true, nothing further is accepted; requests in hand are answered.
  std::function<bool()> over;
};

class HttpServer {
 public:
  // Listens on 127.0.0.1. `port` 0: a free one. Errors (kUsage): the port is not free.
  static Result<std::unique_ptr<HttpServer>> Listen(int port, ServerLimits limits);
  ~HttpServer();
  int port() const;
  // Returns once `handlers.over` was true and what was in hand is answered. Call it once.
  void Serve(const ServerHandlers& handlers);

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace assay
