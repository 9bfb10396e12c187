#include "web/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/secret.h"
#include "web/html.h"
#include "web/replies.h"

namespace assay {
namespace {

constexpr std::string_view kBearer = "Bearer ";

bool IsForPrograms(const std::string& path) {
  return path.starts_with("/api/") || path == "/openapi.json";
}

const char* HowToSignIn(const std::string& path) {
  return IsForPrograms(path)
             ? "send a token as Authorization: Bearer"
             : "your session is over: sign in, go back to the form, and send it again";
}

bool ChangesNothing(const std::string& method) { return method == "GET" || method == "HEAD"; }

bool IsLoopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1" || address == "::ffff:127.0.0.1";
}

std::string Trimmed(std::string text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Letters, digits, '-', '.', ':' and brackets: nothing that could end a header or a tag.
bool IsHostName(const std::string& host) {
  return !host.empty() && host.size() <= 255 &&
         host.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:"
             "[]_") == std::string::npos;
}

}  // namespace

std::pair<std::string, std::string> SessionCookie(const std::string& session, bool is_secure) {
  std::string value =
      fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict", kSessionCookie, session);
  value += session.empty() ? "; Max-Age=0" : "; Max-Age=1209600";
  if (is_secure) value += "; Secure";
  return {"Set-Cookie", value};
}

Site::Site(Hall& hall, std::vector<Route> routes, SiteOptions options, ErrorPage error_page)
    : hall_(hall),
      routes_(std::move(routes)),
      options_(std::move(options)),
      error_page_(std::move(error_page)),
      accounts_(options_.account_rate),
      addresses_(options_.address_rate),
      wrong_(options_.wrong_rate) {}

Site::Found Site::Find(const std::string& method, const std::string& path) const {
  Found found;
  const std::string wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    auto captures = MatchPath(route.pattern, path);
    if (!captures) continue;
    if (route.method != wanted) {
      found.allowed += (found.allowed.empty() ? "" : ", ") + route.method;
      continue;
    }
    found.route = &route;
    found.captures = std::move(*captures);
    return found;
  }
  return found;
}

std::optional<std::string> Site::OriginOf(const ServedRequest& request) const {
  const std::string host = request.Header("host");
  if (!IsHostName(host)) return std::nullopt;
  const std::string forwarded = request.Header("x-forwarded-proto");
  if (options_.behind_proxy && IsLoopback(request.peer)) {
    if (forwarded == "https") return "https://" + host;
    // The proxy took it by plain HTTP: its Host is the peer's word.
    if (!forwarded.empty() || !request.Header("x-forwarded-for").empty()) return std::nullopt;
  }
  for (const char* name : {"127.0.0.1", "localhost"})
    if (host == fmt::format("{}:{}", name, options_.port)) return "http://" + host;
  return std::nullopt;
}

std::string Site::AddressOf(const ServedRequest& request) const {
  const std::string forwarded = request.Header("x-forwarded-for");
  if (!options_.behind_proxy || forwarded.empty() || !IsLoopback(request.peer)) return request.peer;
  // The last one is the proxy's own word; those before it are the peer's.
  const size_t comma = forwarded.rfind(',');
  return Trimmed(comma == std::string::npos ? forwarded : forwarded.substr(comma + 1));
}

ServedReply Site::Error(const std::string& path, int status, const std::string& message,
                        const WebRequest* request) const {
  ServedReply reply =
      IsForPrograms(path) ? ErrorReply(status, message) : error_page_(status, message, request);
  if (status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

void Site::AddHeaders(ServedReply* reply, bool is_secure) const {
  auto& headers = reply->headers;
  headers.emplace_back("Content-Security-Policy",
                       reply->content_type.starts_with("text/html")
                           ? options_.security_policy
                           : "default-src 'none'; frame-ancestors 'none'");
  headers.emplace_back("X-Content-Type-Options", "nosniff");
  // Under no-referrer, browsers send the origin "null" with a form, which CheckForm refuses.
  headers.emplace_back("Referrer-Policy", "same-origin");
  headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  headers.emplace_back("X-Frame-Options", "DENY");
  if (is_secure) headers.emplace_back("Strict-Transport-Security", "max-age=31536000");
}

std::optional<ServedReply> Site::Refuse(const ServedRequest& request) {
  const auto refusal = [&](int status, const std::string& why) {
    ServedReply reply = Error(request.target, status, why, nullptr);
    AddHeaders(&reply, false);
    return reply;
  };
  if (!OriginOf(request))
    return refusal(403,
                   options_.behind_proxy
                       ? "this server is asked by a proxy that speaks TLS: it sends Host and "
                         "X-Forwarded-Proto"
                       : "this server is for this machine: ask it by 127.0.0.1, or put a proxy "
                         "with TLS before it (--behind-proxy)");
  const auto target = ReadTarget(request.target);
  if (!target) return refusal(400, "this address is none of a server's");
  const int wait_s = addresses_.Take(AddressOf(request), InstantNow().steady_ms);
  if (wait_s > 0) {
    ServedReply reply = refusal(429, "too many requests from one address: try again later");
    reply.headers.emplace_back("Retry-After", std::to_string(wait_s));
    return reply;
  }
  const Found found = Find(request.method, target->path);
  if (found.route == nullptr && found.allowed.empty())
    return refusal(404, "there is nothing at this address");
  if (found.route == nullptr) {
    ServedReply reply = refusal(405, "this address takes " + found.allowed);
    reply.headers.emplace_back("Allow", found.allowed);
    return reply;
  }
  const bool is_open = found.route->access == Access::kAnyone;
  if (!is_open && !ChangesNothing(request.method) && request.Header("authorization").empty() &&
      request.Header("cookie").empty())
    return refusal(401, HowToSignIn(target->path));
  if (!request.Header("transfer-encoding").empty())
    return refusal(411, "send the body's length: Content-Length");
  const std::string length = request.Header("content-length");
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (!length.empty() && (error != std::errc() || end != length.data() + length.size()))
    return refusal(400, "Content-Length is no number");
  if (bytes > found.route->body_bytes_max)
    return refusal(413, fmt::format("the body is over {} KiB", found.route->body_bytes_max >> 10));
  return std::nullopt;
}

std::optional<ServedReply> Site::Identify(WebRequest* request) {
  const std::string authorization = request->http.Header("authorization");
  Accounts accounts = hall_.accounts();
  std::string peer = AddressOf(request->http);
  const auto wrong = [&]() -> std::optional<ServedReply> {
    const int wait_s = wrong_.Take(peer, request->now.steady_ms);
    if (wait_s == 0)
      return Error(request->path, 401, "this token is none, or was revoked: ask your mentor",
                   nullptr);
    ServedReply reply =
        Error(request->path, 429, "too many wrong tokens: try again later", nullptr);
    reply.headers.emplace_back("Retry-After", std::to_string(wait_s));
    return reply;
  };
  if (!authorization.empty()) {
    if (!authorization.starts_with(kBearer)) return wrong();
    auto account = accounts.OfAccess(Trimmed(authorization.substr(kBearer.size())), request->now);
    if (!account) return ErrorReply(account.error());
    if (!*account) return wrong();
    request->account = std::move(*account);
  } else {
    const FieldMap cookies = ReadCookies(request->http.Header("cookie"));
    const auto cookie = cookies.find(kSessionCookie);
    if (cookie == cookies.end()) return std::nullopt;
    auto account = accounts.OfSession(cookie->second, request->now);
    if (!account) return ErrorReply(account.error());
    if (!*account) return std::nullopt;  // a session that is over: nobody
    request->account = std::move(*account);
    request->session = cookie->second;
    request->csrf = CsrfTokenOf(cookie->second);
  }
  const int wait_s = accounts_.Take(std::to_string(request->account->id), request->now.steady_ms);
  if (wait_s == 0) return std::nullopt;
  ServedReply reply = Error(request->path, 429, "too many requests: try again later", request);
  reply.headers.emplace_back("Retry-After", std::to_string(wait_s));
  return reply;
}

std::optional<ServedReply> Site::CheckForm(WebRequest* request) const {
  if (ChangesNothing(request->http.method)) return std::nullopt;
  // Programs send JSON, whatever they call it: curl calls it a form.
  const std::string type =
      IsForPrograms(request->path) ? std::string() : request->http.Header("content-type");
  if (type.starts_with("application/x-www-form-urlencoded")) {
    auto form = ReadForm(request->http.body);
    if (!form) return Error(request->path, 400, "the form is broken: send it again", request);
    request->form = std::move(*form);
  } else if (type.starts_with("multipart/form-data")) {
    auto parts = ReadMultipart(type, request->http.body);
    if (!parts) return Error(request->path, 400, parts.error().message, request);
    for (FormPart& part : *parts) {
      if (part.file_name.empty())
        request->form.emplace(part.name, std::move(part.content));
      else
        request->files.push_back(std::move(part));
    }
  }
  const std::string origin = request->http.Header("origin");
  const std::string fetch_site = request->http.Header("sec-fetch-site");
  const bool foreign = (!origin.empty() && origin != request->origin) ||
                       (!fetch_site.empty() && fetch_site != "same-origin" && fetch_site != "none");
  if (foreign && request->http.Header("authorization").empty())
    return Error(request->path, 403, "this request comes from another site's page", nullptr);
  if (request->session.empty()) return std::nullopt;
  const std::string header = request->http.Header("x-csrf-token");
  if (IsSameSecret(header.empty() ? request->Form("csrf") : header, request->csrf))
    return std::nullopt;
  return Error(request->path, 403, "the form is of another session: load the page again", request);
}

std::optional<ServedReply> Site::CheckAccess(const Route& route, const WebRequest& request) const {
  const Access access =
      route.access == Access::kReader && options_.is_public ? Access::kAnyone : route.access;
  if (access == Access::kAnyone) return std::nullopt;
  if (request.account) {
    if (access == Access::kServerMentor && !request.account->ManagesServer())
      return Error(request.path, 403, "this is for mentors of the whole server", &request);
    if (access == Access::kMentor && !request.IsMentor())
      return Error(request.path, 403, "this is for mentors", &request);
    return std::nullopt;
  }
  if (!IsForPrograms(request.path) && request.http.method == "GET")
    return Redirect(request.path == "/" ? "/login" : "/login?next=" + UrlPart(request.path));
  return Error(request.path, 401, HowToSignIn(request.path), &request);
}

ServedReply Site::Answer(const ServedRequest& http) {
  auto target = ReadTarget(http.target);
  const auto origin = OriginOf(http);
  if (!target || !origin) return Fault(400, "this address is none of a server's");
  Found found = Find(http.method, target->path);
  if (found.route == nullptr) return Fault(404, "there is nothing at this address");
  WebRequest request{.http = http,
                     .path = std::move(target->path),
                     .query = std::move(target->query),
                     .captures = std::move(found.captures),
                     .form = {},
                     .files = {}};
  request.origin = *origin;
  request.is_secure = origin->starts_with("https:");
  request.now = InstantNow();
  ServedReply reply;
  {
    const std::scoped_lock lock(hall_.mutex);
    std::optional<ServedReply> refusal = Identify(&request);
    if (!refusal) refusal = CheckAccess(*found.route, request);
    if (!refusal) refusal = CheckForm(&request);
    reply = refusal ? std::move(*refusal) : found.route->handler(hall_, request);
  }
  if (reply.wait) {
    const auto ask = [this, wait = reply.wait, secure = request.is_secure](bool last) {
      std::optional<ServedReply> answer = wait->ask(last);
      if (answer) AddHeaders(&*answer, secure);
      return answer;
    };
    reply.wait =
        std::make_shared<ServedWait>(ServedWait{reply.wait->topic, reply.wait->wait_ms, ask});
  }
  AddHeaders(&reply, request.is_secure);
  return reply;
}

ServedReply Site::Fault(int status, const std::string& why) {
  ServedReply reply = ErrorReply(status, why);
  AddHeaders(&reply, false);
  return reply;
}

}  // namespace assay
