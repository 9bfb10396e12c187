// A writer of candidates: a prompt in, an answer out, its cost booked. Proposers see prompts alone:
// no verdict, no session, no device.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/stop_token.h"

namespace assay {

struct Prompt {
  std::string key;     // unique in its search, and the same when that is gone on with: "softmax/7"
  std::string system;  // what the proposer is; may be empty
  std::string text;    // what is asked
  double temperature = 1.0;
  int64_t answer_tokens_max = 8192;
  uint64_t seed = 0;  // for those that take one
};

struct Usage {
  int64_t tokens_in = 0, tokens_out = 0;
  double usd = 0;  // 0 where the price is not known
  double wall_s = 0;
};

struct Answer {
  std::string text;       // as it came; may be empty
  std::string reasoning;  // what the model thought, where it is told apart
  std::string model;      // as the answerer names itself
  std::string finish;     // why it ended: "stop", "length", or the answerer's own word
  Usage usage;
};

// Several threads may use one proposer at the same time.
class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual std::string Name() const = 0;  // as the user wrote it: "openai:qwen3@http://..."
  // The most that an answer to this prompt can cost, if the first attempt brings it: what attempts
  // that broke off have cost, where that is known, comes on top of the answer's usage.
  virtual Usage Reservation(const Prompt& prompt) const = 0;
  // Errors (kUsage): the prompt must be neither asked nor recorded, since a key is in it.
  virtual Result<void> Check(const Prompt& /*prompt*/) const { return {}; }
  // True: an answer costs nothing, and the same one comes again.
  virtual bool IsFree() const { return false; }
  // Errors: kUsage (a wrong key, an unknown model: the same for every prompt), kEnvironment (no
  // answer after all attempts), kInterrupted.
  virtual Result<Answer> Propose(const Prompt& prompt, StopToken stop) = 0;
};

}  // namespace assay
