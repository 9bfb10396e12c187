// Anthropic's Messages API, version 2023-06-01.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "propose/chat_protocol.h"
#include "propose/events.h"
#include "propose/json_read.h"
#include "propose/retry.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kEndMark = "\nevent: message_stop";

// Cached tokens are counted apart from the others there.
void ReadUsage(const Json& holder, Answer& answer) {
  const Json* usage = Member(holder, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  const int64_t tokens_in = CountIn(*usage, "input_tokens") +
                            CountIn(*usage, "cache_creation_input_tokens") +
                            CountIn(*usage, "cache_read_input_tokens");
  // A stream tells of them in several events, each a sum so far.
  answer.usage.tokens_in = std::max(answer.usage.tokens_in, tokens_in);
  answer.usage.tokens_out = std::max(answer.usage.tokens_out, CountIn(*usage, "output_tokens"));
}

void ReadFinish(const Json& holder, Answer& answer) {
  const std::string reason = TextIn(holder, "stop_reason");
  if (reason == "end_turn" || reason == "stop_sequence") {
    answer.finish = "stop";
  } else if (reason == "max_tokens") {
    answer.finish = "length";
  } else if (!reason.empty()) {
    answer.finish = reason;
  }
}

void AddBlock(const Json& block, Answer& answer) {
  answer.text += TextIn(block, "text");
  answer.reasoning += TextIn(block, "thinking");
}

class Anthropic : public ChatProtocol {
 public:
  std::string_view name() const override { return "anthropic"; }
  std::string_view path() const override { return "/v1/messages"; }
  std::string_view key_header() const override { return "x-api-key: "; }
  std::vector<std::string> headers() const override {
    return {"content-type: application/json", "anthropic-version: 2023-06-01"};
  }
  std::string_view end_mark() const override { return kEndMark; }

  std::string Body(const Prompt& prompt, const std::string& model, const ModelFacts& facts,
                   bool stream) const override {
    Json body = {{"model", model}, {"max_tokens", TokensAsked(prompt, facts)}};
    if (!prompt.system.empty()) body["system"] = prompt.system;
    body["messages"] = Json::array({{{"role", "user"}, {"content", prompt.text}}});
    if (facts.takes_temperature)
      body["temperature"] = std::min(prompt.temperature, facts.temperature_max);
    if (stream) body["stream"] = true;
    return body.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  ChatReply Read(std::string_view body, bool is_stream) const override {
    if (is_stream) return ReadStream(body);
    ChatReply reply;
    const Json document = Json::parse(body, nullptr, false);
    if (document.is_discarded() || !document.is_object()) {
      reply.trouble = "its reply is no JSON object, or not all of it came";
      return reply;
    }
    if (TextIn(document, "type") == "error") return Failed(body);
    const Json* content = Member(document, "content");
    if (content == nullptr || !content->is_array()) {
      reply.trouble = "its reply has no content";
      return reply;
    }
    reply.answer.model = TextIn(document, "model");
    ReadUsage(document, reply.answer);
    ReadFinish(document, reply.answer);
    for (const Json& block : *content) AddBlock(block, reply.answer);
    reply.kind = ChatReply::Kind::kAnswer;
    return reply;
  }

 private:
  static ChatReply Failed(std::string_view text) {
    return {ChatReply::Kind::kFailed, {}, ReadServiceError(text).message};
  }

  static ChatReply ReadStream(std::string_view body) {
    ChatReply reply;
    // The data of the last event may not have come: nothing is in it.
    const bool is_done = body.find(kEndMark) != std::string_view::npos;
    for (const ServerEvent& event : ParseServerEvents(body.substr(0, body.find(kEndMark)))) {
      const Json document = Json::parse(event.data, nullptr, false);
      if (document.is_discarded() || !document.is_object()) {
        reply.trouble = "its stream has an event that is no JSON object, or not all of it came";
        return reply;
      }
      if (event.name == "error") return Failed(event.data);
      if (const Json* message = Member(document, "message")) {
        reply.answer.model = TextIn(*message, "model");
        ReadUsage(*message, reply.answer);
      }
      if (const Json* block = Member(document, "content_block")) AddBlock(*block, reply.answer);
      if (const Json* delta = Member(document, "delta")) {
        AddBlock(*delta, reply.answer);
        ReadFinish(*delta, reply.answer);
      }
      ReadUsage(document, reply.answer);
    }
    if (!is_done && reply.answer.finish.empty()) {
      reply.trouble = "its stream ended before the answer did";
      return reply;
    }
    reply.kind = ChatReply::Kind::kAnswer;
    return reply;
  }
};

}  // namespace

std::unique_ptr<ChatProtocol> AnthropicProtocol() { return std::make_unique<Anthropic>(); }

}  // namespace assay
