// A server of HTTP/1.1 on the loopback interface, for programs and pages of this machine's user,
// and for a proxy on this machine. The library (Boost.Beast) is in server.cc alone, since it takes
// long to compile.
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
  std::string peer = {};  // the address that it came from

  // Empty if it is missing.
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// A body that is sent part by part, as they come. It holds no thread meanwhile.
struct ServedStream {
  std::string topic;  // of HttpServer::Wake
  // Returns what is new, or an empty text; nullopt: the body is at its end. It is called at once,
  // at each Wake, and after `look_ms` without one; from one thread at a time.
  std::function<std::optional<std::string>()> next;
  int look_ms = 15'000;
  // True once the last part was given: nothing is waited for then.
  std::function<bool()> ended = [] { return false; };
};

struct ServedWait;

struct ServedReply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
  std::shared_ptr<const ServedStream> stream = {};                // in the place of `body`
  std::shared_ptr<const ServedWait> wait = {};                    // in the place of the whole reply
};

// A reply that is not known yet. It holds no thread meanwhile.
struct ServedWait {
  std::string topic;  // of HttpServer::Wake
  int wait_ms = 0;
  // Returns the reply, or nullopt to go on waiting; after the last call nothing is waited for. It
  // is called at once, at each Wake and at the end, as long as the peer is there.
  std::function<std::optional<ServedReply>(bool last)> ask;
};

struct ServerLimits {
  size_t header_bytes_max = size_t{16} << 10;
  size_t body_bytes_max = size_t{64} << 20;
  // Further ones wait. Where they do, the peer that has been silent for longest is cut off, if it
  // has been for `silent_ms`.
  size_t connections_max = 64;
  size_t handlers = 4;             // requests that are worked on at a time
  int idle_ms = 30'000;            // a peer that neither sends nor reads for so long is cut off
  int header_ms = 10'000;          // from a request's first byte to the end of its header
  int silent_ms = 1'000;           // between requests, or within a header
  size_t body_bytes_s_min = 1024;  // of a body, on the average after `idle_ms`
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
  // Asks the streams and waits of that topic again. Any thread may call it.
  void Wake(const std::string& topic);
  // Returns once `handlers.over` was true and what was in hand is answered; streams end there. Call
  // it once.
  void Serve(const ServerHandlers& handlers);

 private:
  struct Parts;
  explicit HttpServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace assay
