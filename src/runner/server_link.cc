#include "runner/server_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/trimmed.h"
#include "http/back_off.h"
#include "machine/seeds.h"

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr const char* kTokenVariable = "ASSAY_TOKEN";
constexpr int kLookMs = 50;
constexpr double kConnectSeconds = 10;
constexpr size_t kMessageBytesMax = 600;

// The message of {"error": {"message": ...}}; of another text its beginning, in one line.
std::string MessageOf(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  std::string message;
  if (json.is_object() && json.contains("error") && json["error"].is_object()) {
    const auto found = json["error"].find("message");
    if (found != json["error"].end() && found->is_string()) message = found->get<std::string>();
  }
  if (message.empty()) message = Trimmed(body);
  message = message.substr(0, kMessageBytesMax);
  for (char& c : message)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return message;
}

bool IsBusy(int status) { return status == 408 || status == 425 || status == 429 || status >= 500; }

bool WaitSeconds(double seconds, StopToken stop) {
  const Deadline deadline = Deadline::AfterSeconds(seconds);
  while (!deadline.Expired() && !stop.stopped())
    ::poll(nullptr, 0, std::min(deadline.RemainingMs(), kLookMs));
  return !stop.stopped();
}

}  // namespace

RepeatSurroundings RealRepeats() { return {&MonotonicNs, &WaitSeconds, &FreshSeed}; }

Result<std::string> ParseServerUrl(const std::string& url) {
  const auto parts = ParseUrl(url);
  if (!parts)
    return UsageError(
        fmt::format("--server {}: give the server's URL, such as https://assay.example.org", url));
  if (parts->has_login || parts->has_more)
    return UsageError(
        "--server: a server's URL has no password, no '?' and no '#': give the token by "
        "--token-file or in $ASSAY_TOKEN");
  if (parts->scheme == "http" && !parts->is_on_this_machine())
    return UsageError(fmt::format(
        "--server: by plain http, all between here and {} could read the token and the sources: "
        "use https",
        parts->host));
  std::string base = url;
  while (base.ends_with('/')) base.pop_back();
  return base;
}

Result<ApiKey> ReadServerToken(const std::string& token_file) {
  return token_file.empty() ? KeyFromEnvironment(kTokenVariable) : ReadKeyFile(token_file);
}

ServerLink::ServerLink(std::string base, ApiKey token, std::unique_ptr<HttpClient> client)
    : base_(std::move(base)), token_(std::move(token)), client_(std::move(client)) {}

ServerReply ServerLink::Refusal(const HttpReply& reply) const {
  using Kind = ServerReply::Kind;
  ServerReply refusal{IsBusy(reply.status) ? Kind::kLater : Kind::kRefused, reply.status};
  std::string message = token_.Scrubbed(MessageOf(reply.body));
  if (message.empty()) message = fmt::format("HTTP {}", reply.status);
  if (reply.status == 401) {
    refusal.kind = Kind::kNoToken;
    message = token_.empty() ? fmt::format("{} wants a token: give --token-file, or set ${}", base_,
                                           kTokenVariable)
                             : fmt::format("{} does not accept the token: {}", base_, message);
  } else if (reply.status >= 300 && reply.status < 400) {
    message = fmt::format("{} says that it is elsewhere; redirects are not followed: use {}", base_,
                          reply.location);
  } else {
    message = fmt::format("{}: {}", base_, message);
  }
  refusal.error = {refusal.kind == Kind::kLater ? ErrorKind::kEnvironment : ErrorKind::kUsage,
                   std::move(message)};
  if (!reply.retry_after.empty())
    refusal.wait_s = ParseRetryAfter(reply.retry_after, int64_t{::time(nullptr)});
  return refusal;
}

ServerReply ServerLink::Call(const ServerCall& call, StopToken stop) const {
  using Kind = ServerReply::Kind;
  HttpRequest request;
  request.method = call.method;
  request.url = base_ + call.path;
  request.headers = call.headers;
  if (call.method == "POST") request.headers.emplace_back("content-type: application/json");
  request.key_header = "authorization: Bearer ";
  request.key = &token_;
  request.body = call.body;
  request.take = call.take;
  request.times.connect_s = kConnectSeconds;
  request.times.total_s = call.total_s;
  HttpReply reply = client_->Send(request, stop);
  if (reply.end == HttpReply::End::kStopped)
    return {Kind::kStopped, 0, "", "", {}, {ErrorKind::kInterrupted, "interrupted"}};
  const bool is_whole = reply.end == HttpReply::End::kWhole;
  if (is_whole && reply.status >= 200 && reply.status < 300)
    return {Kind::kDone, reply.status, std::move(reply.body), std::move(reply.content_type)};
  if (is_whole && reply.status != 0) return Refusal(reply);
  const bool cannot = reply.end == HttpReply::End::kRefused;
  return {cannot ? Kind::kRefused : Kind::kLater,
          0,
          "",
          "",
          {},
          {cannot ? ErrorKind::kUsage : ErrorKind::kEnvironment,
           fmt::format("cannot reach {}: {}", base_, token_.Scrubbed(reply.error))}};
}

}  // namespace assay
