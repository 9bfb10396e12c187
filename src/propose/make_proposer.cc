#include "propose/make_proposer.h"

#include <fmt/format.h>

#include "propose/chat_proposer.h"
#include "propose/command_proposer.h"
#include "propose/inbox.h"
#include "propose/transcript.h"

namespace assay {
namespace {

constexpr std::string_view kForms =
    "  openai:MODEL[@URL]      a chat endpoint, such as openai:qwen3@http://localhost:8080/v1\n"
    "  anthropic:MODEL[@URL]   the Messages API\n"
    "  command:PROGRAM ARGS    the prompt on its stdin, the answer from its stdout\n"
    "  inbox:FOLDER            prompts and answers as files\n"
    "  replay:FILE             answers of a recorded transcript";

struct Place {
  std::string model, url, host;
  bool is_default = false;  // the service's own URL
  bool is_private = false;  // encrypted, or on this machine
};

// "MODEL@URL" or "MODEL". A URL must be safe to show: no password, no query.
Result<Place> ParsePlace(std::string_view rest, std::string_view default_url) {
  Place place;
  size_t at = rest.find("@http://");
  if (at == std::string_view::npos) at = rest.find("@https://");
  place.model = rest.substr(0, at);
  place.is_default = at == std::string_view::npos;
  place.url = place.is_default ? default_url : rest.substr(at + 1);
  while (place.url.ends_with('/')) place.url.pop_back();
  if (place.model.empty() || place.model.find("://") != std::string::npos)
    return UsageError("name a model, then its URL, as in openai:qwen3@http://localhost:8080/v1");
  const std::optional<UrlParts> parts = ParseUrl(place.url);
  if (!parts)
    return UsageError(
        "a URL begins with http:// or https://, and has a host: "
        "openai:qwen3@http://localhost:8080/v1");
  if (parts->has_login || parts->has_more)
    return UsageError(
        "a proposer's URL has no password, no '?' and no '#', since it is recorded: give a key by "
        "--key-file or in the environment");
  place.host = parts->host;
  place.is_private = parts->scheme == "https" || parts->is_on_this_machine();
  return place;
}

struct Service {
  std::string_view default_url;
  const char* variable;
  std::string_view suffix;  // of a URL, that users write and the path has already
};
constexpr Service kOpenAi = {"https://api.openai.com/v1", "OPENAI_API_KEY", ""};
constexpr Service kAnthropic = {"https://api.anthropic.com", "ANTHROPIC_API_KEY", "/v1"};

// A key goes over https, or stays on this machine.
Result<ApiKey> KeyFor(const Place& place, const Service& service, const ProposerOptions& options) {
  if (!options.key_file.empty()) {
    if (!place.is_private)
      return UsageError(fmt::format(
          "a key would travel to {} for all to read: use https, or go without --key-file",
          place.host));
    return ReadKeyFile(options.key_file);
  }
  if (!place.is_private) return ApiKey();
  ASSAY_ASSIGN_OR_RETURN(ApiKey key, KeyFromEnvironment("ASSAY_API_KEY"));
  if (!key.empty()) return key;
  return KeyFromEnvironment(service.variable);
}

Result<std::unique_ptr<Proposer>> MakeChat(std::string_view text, std::string_view rest,
                                           const Service& service,
                                           std::unique_ptr<ChatProtocol> protocol,
                                           const ProposerOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(Place place, ParsePlace(rest, service.default_url));
  if (place.url.ends_with(protocol->path()))
    place.url.resize(place.url.size() - protocol->path().size());
  if (place.url.ends_with(service.suffix))
    place.url.resize(place.url.size() - service.suffix.size());
  ASSAY_ASSIGN_OR_RETURN(const ModelTable models, ModelTable::Load(options.models_file));
  ASSAY_ASSIGN_OR_RETURN(ApiKey key, KeyFor(place, service, options));
  ChatTerms terms;
  terms.key_advice = place.is_private ? fmt::format("set $ASSAY_API_KEY or ${}, or use --key-file",
                                                    service.variable)
                                      : "keys are sent by https, or to this machine";
  if (place.is_default && key.empty())
    return UsageError(fmt::format("{} needs a key: {}", place.host, terms.key_advice));
  terms.name = text;
  terms.model = place.model;
  terms.base = place.url;
  terms.facts = models.Find(protocol->name(), place.model);
  terms.stream = options.stream;
  terms.times.total_s = options.timeout_s;
  terms.times.idle_s = std::min(terms.times.idle_s, options.timeout_s);
  return std::make_unique<ChatProposer>(std::move(terms), std::move(protocol), std::move(key),
                                        RealSurroundings());
}

Result<std::unique_ptr<Proposer>> MakeBare(std::string_view text, const ProposerOptions& options) {
  const size_t colon = text.find(':');
  const std::string_view form = text.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const std::string name(text);
  if (!rest.empty()) {
    if (form == "openai") return MakeChat(text, rest, kOpenAi, OpenAiProtocol(), options);
    if (form == "anthropic") return MakeChat(text, rest, kAnthropic, AnthropicProtocol(), options);
    if (form == "command") return CommandProposer::Open(name, rest, {options.timeout_s});
    if (form == "inbox") return InboxProposer::Open(name, std::string(rest));
    if (form == "replay") return ReplayProposer::Open(name, std::string(rest));
  }
  return UsageError(fmt::format("'{}' is no proposer; one of:\n{}", text, kForms));
}

}  // namespace

std::string_view ProposerForms() { return kForms; }

Result<std::unique_ptr<Proposer>> MakeProposer(std::string_view text,
                                               const ProposerOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Proposer> proposer, MakeBare(text, options));
  if (options.record_file.empty()) return proposer;
  return RecordingProposer::Open(std::move(proposer), options.record_file, options.provenance);
}

}  // namespace assay
