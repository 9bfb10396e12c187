// Serves an environment over HTTP on the loopback interface, for trainers that cannot own its
// process (docs/env.md). Whoever asks must know a token.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/stop_token.h"

namespace assay {

struct EnvHttpTerms {
  int port = 0;       // 0: a free one
  std::string token;  // 32 hexadecimal digits
  std::string ready;  // what GET /ready says
  // Answers a request's text with an event's; calls come one at a time.
  std::function<std::string(const std::string& request)> handle;
  std::function<bool()> ended;
};

// Returns when a shutdown was asked for; `listens` is told the port first. Errors: the port is not
// free (kUsage); kInterrupted.
Result<void> ServeEnvHttp(const EnvHttpTerms& terms, const std::atomic<bool>& interrupted,
                          const std::function<void(int port)>& listens);

// Reads the token in `path`, a file of mode 0600; makes the file, with 128 random bits, if it is
// missing. Errors (kUsage): others may read it, or it has no token.
Result<std::string> EnvToken(const std::string& path);

}  // namespace assay
