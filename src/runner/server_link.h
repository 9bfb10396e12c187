// Talks to a server of Assay (docs/serve.md): its address, the token, the meaning of its replies.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/stop_token.h"
#include "http/client.h"

namespace assay {

// Returns a server's URL without a slash at its end. Errors (kUsage): no URL of http or https, one
// with a password or a query, or plain http to another machine.
Result<std::string> ParseServerUrl(const std::string& url);

// Reads the token from the file, or without one from $ASSAY_TOKEN; empty: there is none. Errors:
// kUsage.
Result<ApiKey> ReadServerToken(const std::string& token_file);

struct ServerCall {
  std::string method = "GET";
  std::string path;  // "/api/jobs"
  std::string body = {};
  std::vector<std::string> headers = {};
  double total_s = 30;
  std::function<bool(std::string_view bytes)> take = {};  // as HttpRequest::take
};

struct ServerReply {
  enum class Kind {
    kDone,     // status 2xx
    kLater,    // no reply, or it is busy: the same call may work later
    kRefused,  // it never will; kUsage
    kNoToken,  // the token is missing or not accepted; kUsage
    kStopped,  // by the stop token; kInterrupted
  };
  Kind kind = Kind::kLater;
  int status = 0;  // 0: no reply
  std::string body = {}, content_type = {};
  std::optional<double> wait_s = {};  // as the server asks
  Error error = {};                   // unless kDone
};

// Several threads may use one link at the same time.
class ServerLink {
 public:
  // `base`: of ParseServerUrl().
  ServerLink(std::string base, ApiKey token, std::unique_ptr<HttpClient> client);
  const std::string& base() const { return base_; }
  ServerReply Call(const ServerCall& call, StopToken stop) const;

 private:
  ServerReply Refusal(const HttpReply& reply) const;

  const std::string base_;
  const ApiKey token_;
  const std::unique_ptr<HttpClient> client_;
};

// The world around calls that are repeated: the clock, waiting, and chance.
struct RepeatSurroundings {
  std::function<int64_t()> now_ns;
  // Returns false if it was stopped.
  std::function<bool(double seconds, StopToken stop)> wait;
  std::function<uint64_t()> random;
};
RepeatSurroundings RealRepeats();

}  // namespace assay
