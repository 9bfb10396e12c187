#include "propose/retry.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "propose/text.h"

namespace assay {
namespace {

using Json = nlohmann::json;

constexpr size_t kMessageBytesMax = 400;

std::string TextAt(const Json& object, const char* name) {
  if (!object.is_object()) return "";
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// One line without bytes that a terminal obeys.
std::string OneLine(std::string_view text) {
  std::string line(Trimmed(text).substr(0, kMessageBytesMax));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return MendUtf8(std::move(line));
}

bool Names(std::string_view text, std::initializer_list<std::string_view> words) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return std::ranges::any_of(
      words, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

}  // namespace

std::optional<double> ParseRetryAfter(std::string_view text, int64_t now_unix_s) {
  text = Trimmed(text);
  double seconds = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && !text.empty())
    return seconds >= 0 ? std::optional(seconds) : std::nullopt;
  const time_t then = ::curl_getdate(std::string(text).c_str(), nullptr);
  if (then < 0) return std::nullopt;
  return static_cast<double>(std::max<int64_t>(0, int64_t{then} - now_unix_s));
}

double BackOffSeconds(const RetryTerms& terms, int attempt, uint64_t random) {
  double wait = terms.wait_s_first;
  for (int i = 1; i < attempt && wait < terms.wait_s_max; ++i) wait *= 2;
  const double share = 0.5 + 0.5 * static_cast<double>(random >> 11) / 9007199254740992.0;
  return std::min(wait, terms.wait_s_max) * share;
}

ServiceError ReadServiceError(std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return {OneLine(body), ""};
  // {"error": {"message": ..., "type": ..., "code": ...}}, {"error": "..."}, {"message": ...},
  // {"detail": ...}
  ServiceError error;
  const auto inner = json.find("error");
  const Json& object = inner != json.end() && inner->is_object() ? *inner : json;
  for (const char* name : {"message", "error", "detail"})
    if (error.message.empty()) error.message = OneLine(TextAt(object, name));
  error.type = OneLine(TextAt(object, "code") + " " + TextAt(object, "type"));
  if (error.message.empty()) error.message = OneLine(body);
  return error;
}

Remedy RemedyOf(int status, const ServiceError& error) {
  const bool has_no_credit =
      Names(error.type, {"insufficient_quota", "billing"}) ||
      Names(error.message, {"credit balance", "exceeded your current quota"});
  if (status == 429 && has_no_credit) return Remedy::kFixRequest;
  if (status == 408 || status == 409 || status == 425 || status == 429 || status >= 500)
    return Remedy::kRetry;
  if (status == 413) return Remedy::kFixPrompt;
  // Of the prompt's own length or content.
  const bool is_of_prompt =
      Names(error.type, {"context_length", "exceed_context", "content_filter", "content_policy"}) ||
      Names(error.message, {"context length", "context size", "context window", "context limit",
                            "too long", "token count", "max_new_tokens", "too many tokens",
                            "content policy", "content management policy"});
  return status == 400 && is_of_prompt && !has_no_credit ? Remedy::kFixPrompt : Remedy::kFixRequest;
}

}  // namespace assay
