// The two protocols of language models over HTTP: how a prompt is written, and how the reply to it
// is read. Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "propose/models.h"
#include "propose/proposer.h"

namespace assay {

struct ChatReply {
  enum class Kind {
    kAnswer,
    kBroken,  // not whole, or not readable
    kFailed,  // tells of an error of the service, although its status says otherwise
  };
  Kind kind = Kind::kBroken;
  Answer answer;        // of kBroken: its usage, as far as it was told
  std::string trouble;  // unless kAnswer
};

class ChatProtocol {
 public:
  virtual ~ChatProtocol() = default;
  virtual std::string_view name() const = 0;        // "openai", as tables of models have it
  virtual std::string_view path() const = 0;        // after the base URL: "/chat/completions"
  virtual std::string_view key_header() const = 0;  // the key follows it
  virtual std::vector<std::string> headers() const = 0;
  virtual std::string_view end_mark() const = 0;  // ends a stream
  virtual std::string Body(const Prompt& prompt, const std::string& model, const ModelFacts& facts,
                           bool stream) const = 0;
  // Reads a reply of status 200: a document, or a stream of events. `usd` is that of a service
  // that tells it, else 0.
  virtual ChatReply Read(std::string_view body, bool is_stream) const = 0;
};

std::unique_ptr<ChatProtocol> OpenAiProtocol();     // chat completions
std::unique_ptr<ChatProtocol> AnthropicProtocol();  // the Messages API

}  // namespace assay
