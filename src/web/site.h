// The server's door: routes, and the guard before them. It knows who asks, by a token or a session,
// and refuses requests that others' pages make in a member's name.
//
// Rules. A program sends its token in `Authorization: Bearer`. A browser has a session in a cookie
// that scripts cannot read and other sites cannot send. A request that changes something and comes
// by a session carries the session's own field `csrf` (or header `X-CSRF-Token`); if it names its
// origin, that is ours. Hosts other than this machine's own names are refused, unless a proxy on
// this machine says that it took the request by TLS.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/server.h"
#include "serve/hall.h"
#include "web/rate_limit.h"
#include "web/route.h"

namespace assay {

struct SiteOptions {
  int port = 0;
  bool behind_proxy = false;         // X-Forwarded-* of peers on the loopback interface count
  bool is_public = false;            // anyone may read the board
  std::string security_policy = {};  // Content-Security-Policy of pages
  RequestRate account_rate{50, 400};
  RequestRate address_rate{400, 1200};  // of all who are behind one address
  RequestRate wrong_rate{0.2, 20};      // of tokens that are none, by address
};

// An error as a page; `request` has no account if it was refused before.
using ErrorPage =
    std::function<ServedReply(int status, const std::string& message, const WebRequest* request)>;

class Site {
 public:
  Site(Hall& hall, std::vector<Route> routes, SiteOptions options, ErrorPage error_page);

  // For HttpServer.
  std::optional<ServedReply> Refuse(const ServedRequest& request);
  ServedReply Answer(const ServedRequest& request);
  ServedReply Fault(int status, const std::string& why);

 private:
  struct Found {
    const Route* route = nullptr;
    FieldMap captures;
    std::string allowed;  // methods of the path's routes, if none has the request's
  };
  Found Find(const std::string& method, const std::string& path) const;
  // As the peer knows the server: "https://board.example.org"; nullopt: not by this name.
  std::optional<std::string> OriginOf(const ServedRequest& request) const;
  std::string AddressOf(const ServedRequest& request) const;
  // The asker. A reply: nobody may ask so, such as by a token that is none.
  std::optional<ServedReply> Identify(WebRequest* request);
  std::optional<ServedReply> CheckForm(WebRequest* request) const;
  std::optional<ServedReply> CheckAccess(const Route& route, const WebRequest& request) const;
  ServedReply Error(const std::string& path, int status, const std::string& message,
                    const WebRequest* request) const;
  void AddHeaders(ServedReply* reply, bool is_secure) const;

  Hall& hall_;
  const std::vector<Route> routes_;
  const SiteOptions options_;
  const ErrorPage error_page_;
  RateLimit accounts_, addresses_, wrong_;
};

// The session's cookie, for login; with an empty session the one that ends it.
std::pair<std::string, std::string> SessionCookie(const std::string& session, bool is_secure);

inline constexpr const char* kSessionCookie = "assay_session";

}  // namespace assay
