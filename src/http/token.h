// Access to a server on the loopback interface: for those who know its token, and for no web page
// whose name was pointed here.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "http/server.h"

namespace assay {

// Reads the token in `path`, a file of mode 0600; makes the file, with 128 random bits, if it is
// missing. Errors (kUsage): others may read it, or it has no token.
Result<std::string> ReadOrMakeToken(const std::string& path);

// Lets requests pass whose `Host` is the loopback's with this port, and whose `Authorization` has
// the token.
class TokenGuard {
 public:
  TokenGuard(const std::string& token, int port);

  struct Refusal {
    int status = 401;  // or 403
    std::string why;   // what to do
  };
  std::optional<Refusal> Refuse(const ServedRequest& request) const;

 private:
  std::string token_hash_;
  int port_;
};

}  // namespace assay
