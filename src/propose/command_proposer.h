// Asks a program: the prompt on its stdin, the answer from its stdout.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "propose/proposer.h"

namespace assay {

struct CommandTerms {
  double timeout_s = 900;
  size_t answer_bytes_max = size_t{4} << 20;
};

// Splits a command into words as a shell does: blanks separate, '...', "..." and \ quote. Nothing
// is expanded. Errors: kUsage (a quote without its end, no word).
Result<std::vector<std::string>> SplitCommand(std::string_view command);

// Each prompt starts the program anew, with this process's environment and besides
// ASSAY_PROMPT_KEY, ASSAY_TEMPERATURE, ASSAY_SEED, ASSAY_ANSWER_TOKENS. It and what it started (its
// process group) are killed when it has ended, at the time limit, at a flood, at a stop, and when
// the thread that asked ends.
class CommandProposer : public Proposer {
 public:
  // Errors: kUsage (no such program).
  static Result<std::unique_ptr<Proposer>> Open(std::string name, std::string_view command,
                                                CommandTerms terms = {});
  std::string Name() const override { return name_; }
  Usage Reservation(const Prompt&) const override { return {0, 0, 0, terms_.timeout_s}; }
  // Errors: kEnvironment (it failed, flooded, or took too long: with the end of its stderr),
  // kInterrupted.
  Result<Answer> Propose(const Prompt& prompt, StopToken stop) override;

 private:
  CommandProposer(std::string name, std::vector<std::string> words, CommandTerms terms)
      : name_(std::move(name)), words_(std::move(words)), terms_(terms) {}

  const std::string name_;
  const std::vector<std::string> words_;  // the program's path first
  const CommandTerms terms_;
};

}  // namespace assay
