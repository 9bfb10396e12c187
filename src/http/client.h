// One request over HTTP(S), bounded in time and size. No redirects: a key goes to one place alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop_token.h"
#include "http/api_key.h"

namespace assay {

struct HttpTimes {
  double connect_s = 30;
  double idle_s = 300;  // without a byte
  double total_s = 900;
};

struct HttpRequest {
  std::string method = "POST";  // or GET, DELETE: these have no body
  std::string url;
  std::vector<std::string> headers;  // "content-type: application/json"
  std::string key_header;            // "authorization: Bearer ": the key follows it; empty: no key
  const ApiKey* key = nullptr;
  std::string body;
  // Takes the body of a reply with status 200 as it comes, in place of HttpReply::body; false ends
  // it, as a whole one. Empty: not used.
  std::function<bool(std::string_view bytes)> take;
  std::string end_mark;  // of a stream of events: nothing is awaited after it; may be empty
  size_t reply_bytes_max = size_t{64} << 20;  // a streamed token has some 300 bytes
  HttpTimes times;
};

struct HttpReply {
  enum class End {
    kWhole,       // a reply, of any status
    kNotReached,  // no connection
    kBroken,      // it broke off; `body` has its beginning
    kTimedOut,    // likewise
    kTooLarge,    // likewise
    kStopped,     // by the stop token
    kRefused,     // a request that cannot be sent, such as a URL that is none
  };
  End end = End::kRefused;
  int status = 0;  // 0: no reply
  std::string content_type, retry_after, location;
  std::string body;
  std::string error;  // one line, unless kWhole
};

// Several threads may use one client at the same time.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual HttpReply Send(const HttpRequest& request, StopToken stop) = 0;
};

std::unique_ptr<HttpClient> MakeHttpClient();

// The parts of a URL, as requests to it read them.
struct UrlParts {
  std::string scheme, host;  // host: without its port; an IPv6 address in brackets
  bool has_login = false;    // a user's name or a password
  bool has_more = false;     // a query or a fragment
  bool is_on_this_machine() const;
};
std::optional<UrlParts> ParseUrl(const std::string& url);  // nullopt: not one of http or https

}  // namespace assay
