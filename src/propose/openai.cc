// Chat completions, as OpenAI defined them and vLLM, llama.cpp, Ollama, SGLang and others serve
// them. Reasoning comes under several names, or in tags within the content.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "answer/text.h"
#include "propose/chat_protocol.h"
#include "propose/events.h"
#include "propose/json_read.h"
#include "propose/retry.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kSeedMask = 0x7fffffff;  // some servers take 32 bits, with a sign

void AddTexts(const Json& parts, std::string& text) {
  if (parts.is_string()) text += parts.get<std::string>();
  if (!parts.is_array()) return;
  for (const Json& part : parts)
    text += part.is_string() ? part.get<std::string>() : TextIn(part, "text");
}

// Adds a message's content: "..." or [{"type": "text", "text": "..."}, {"type": "thinking",
// "thinking": [...]}].
void AddContent(const Json& content, Answer& answer) {
  AddTexts(content, answer.text);
  if (!content.is_array()) return;
  for (const Json& part : content)
    if (const Json* thinking = Member(part, "thinking")) AddTexts(*thinking, answer.reasoning);
}

// Adds a whole message, or a part of a stream's.
void AddMessage(const Json& message, Answer& answer) {
  if (const Json* content = Member(message, "content")) AddContent(*content, answer);
  // One server may send the same under two names.
  for (const char* name : {"reasoning_content", "reasoning", "thinking"})
    if (const std::string reasoning = TextIn(message, name); !reasoning.empty()) {
      answer.reasoning += reasoning;
      break;
    }
  if (const std::string refusal = TextIn(message, "refusal"); !refusal.empty()) {
    answer.text += refusal;
    answer.finish = "refusal";
  }
}

void ReadUsage(const Json& document, Answer& answer) {
  const Json* usage = Member(document, "usage");
  if (usage == nullptr || !usage->is_object()) return;
  answer.usage.tokens_in = CountIn(*usage, "prompt_tokens");
  answer.usage.tokens_out = CountIn(*usage, "completion_tokens");
  answer.usage.usd = NumberIn(*usage, "cost");
}

// Adds what a document, or a stream's part, says; returns the error that it tells of, if any.
// `text` is the document's: to write it anew would recurse as deep as a stranger nests it.
std::string AddDocument(const Json& document, std::string_view text, const char* message_name,
                        Answer& answer, bool& has_choice) {
  if (const Json* error = Member(document, "error"); error != nullptr && !error->is_null())
    return ReadServiceError(text).message;
  if (answer.model.empty()) answer.model = TextIn(document, "model");
  ReadUsage(document, answer);
  const Json* choices = Member(document, "choices");
  if (choices == nullptr || !choices->is_array() || choices->empty()) return "";
  const Json& choice = choices->front();
  if (const Json* message = Member(choice, message_name)) {
    AddMessage(*message, answer);
    has_choice = true;
  }
  if (const std::string finish = TextIn(choice, "finish_reason");
      !finish.empty() && answer.finish.empty())
    answer.finish = finish;
  return "";
}

ChatReply Whole(Answer answer) {
  SplitText split = SplitReasoning(answer.text);
  if (!split.reasoning.empty()) {
    if (!answer.reasoning.empty()) answer.reasoning += '\n';
    answer.reasoning += split.reasoning;
    answer.text = Trimmed(split.rest);
  }
  return {ChatReply::Kind::kAnswer, std::move(answer), ""};
}

class OpenAi : public ChatProtocol {
 public:
  std::string_view name() const override { return "openai"; }
  std::string_view path() const override { return "/chat/completions"; }
  std::string_view key_header() const override { return "authorization: Bearer "; }
  std::vector<std::string> headers() const override { return {"content-type: application/json"}; }
  std::string_view end_mark() const override { return "\ndata: [DONE]"; }

  std::string Body(const Prompt& prompt, const std::string& model, const ModelFacts& facts,
                   bool stream) const override {
    Json messages = Json::array();
    if (!prompt.system.empty())
      messages.push_back({{"role", "system"}, {"content", prompt.system}});
    messages.push_back({{"role", "user"}, {"content", prompt.text}});
    Json body = {{"model", model},
                 {"messages", std::move(messages)},
                 {facts.tokens_field, TokensAsked(prompt, facts)}};
    if (facts.takes_temperature)
      body["temperature"] = std::min(prompt.temperature, facts.temperature_max);
    if (facts.takes_seed) body["seed"] = prompt.seed & kSeedMask;
    if (stream) {
      body["stream"] = true;
      if (facts.takes_stream_usage) body["stream_options"] = {{"include_usage", true}};
    }
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
    bool has_choice = false;
    reply.trouble = AddDocument(document, body, "message", reply.answer, has_choice);
    if (!reply.trouble.empty()) {
      reply.kind = ChatReply::Kind::kFailed;
      return reply;
    }
    if (!has_choice) {
      reply.trouble = "its reply has no choices[0].message";
      return reply;
    }
    return Whole(std::move(reply.answer));
  }

 private:
  static ChatReply ReadStream(std::string_view body) {
    ChatReply reply;
    bool is_done = false, has_choice = false;
    for (const ServerEvent& event : ParseServerEvents(body)) {
      if (event.data == "[DONE]") {
        is_done = true;
        break;
      }
      const Json document = Json::parse(event.data, nullptr, false);
      if (document.is_discarded() || !document.is_object()) {
        reply.trouble = "its stream has an event that is no JSON object, or not all of it came";
        return reply;
      }
      reply.trouble = AddDocument(document, event.data, "delta", reply.answer, has_choice);
      if (!reply.trouble.empty()) {
        reply.kind = ChatReply::Kind::kFailed;
        return reply;
      }
    }
    // Some servers leave one of the two out.
    if (!is_done && reply.answer.finish.empty()) {
      reply.trouble = "its stream ended before the answer did";
      return reply;
    }
    if (!has_choice && reply.answer.finish.empty()) {
      reply.trouble = "its stream has no answer";
      return reply;
    }
    return Whole(std::move(reply.answer));
  }
};

}  // namespace

std::unique_ptr<ChatProtocol> OpenAiProtocol() { return std::make_unique<OpenAi>(); }

}  // namespace assay
