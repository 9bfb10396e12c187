// Asks a language model over HTTP: retries as the service wants it, and books the cost.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "http/api_key.h"
#include "http/client.h"
#include "propose/chat_protocol.h"
#include "propose/proposer.h"
#include "propose/retry.h"

namespace assay {

struct ChatTerms {
  std::string name;         // the proposer's, as the user wrote it
  std::string model, base;  // base: the URL up to "/v1"; the protocol's path follows
  std::string key_advice;   // how a key is given: "set $OPENAI_API_KEY"
  ModelFacts facts;
  bool stream = true;
  HttpTimes times;
  RetryTerms retry;
};

struct ChatSurroundings {
  std::unique_ptr<HttpClient> client;
  // Returns false if it was stopped.
  std::function<bool(double seconds, StopToken stop)> wait;
  std::function<int64_t()> unix_time_s;
};
ChatSurroundings RealSurroundings();

// Several threads may ask at the same time. When the service tells one to wait, all wait. What is
// refused for every prompt, such as a wrong key, is remembered: later prompts get the same error
// without a call. The key is in no answer and no error.
class ChatProposer : public Proposer {
 public:
  ChatProposer(ChatTerms terms, std::unique_ptr<ChatProtocol> protocol, ApiKey key,
               ChatSurroundings surroundings);
  std::string Name() const override { return terms_.name; }
  Usage Reservation(const Prompt& prompt) const override;
  Result<void> Check(const Prompt& prompt) const override;
  Result<Answer> Propose(const Prompt& prompt, StopToken stop) override;

 private:
  // An attempt's result. `again`: another attempt may help.
  struct Attempt {
    std::optional<Answer> answer;
    Usage usage;  // of one without an answer, as far as it was told
    Error error;
    bool again = false, is_broken = false, is_busy = false;
    std::optional<double> wait_s;  // as the service wants it
  };
  HttpRequest RequestFor(const Prompt& prompt) const;
  Attempt Try(const HttpRequest& request, StopToken stop);
  Attempt ReadReply(const HttpReply& reply, bool is_stream) const;
  Attempt ReadRefusal(const HttpReply& reply);
  std::unexpected<Error> Failed(Error error) const;
  double UsdOf(const Usage& usage) const;

  const ChatTerms terms_;
  const std::unique_ptr<ChatProtocol> protocol_;
  const ApiKey key_;
  const ChatSurroundings surroundings_;
  // Of any prompt: after that, a request that is called wrong is one prompt's fault.
  std::atomic<bool> has_answered_ = false;
  std::atomic<int64_t> not_before_ns_ = 0;  // of the next call of any thread
  std::mutex mutex_;
  std::optional<Error> refused_;  // guarded by mutex_
};

}  // namespace assay
