#include "propose/retry.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "answer/text.h"

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
