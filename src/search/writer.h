// The words of a search by language models: writes what a proposer is asked, and reads the
// candidate out of its answer. A function of its arguments: a search that is gone on with asks the
// same again.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "model/verdict.h"
#include "propose/proposer.h"

namespace assay {

// One candidate that was tried, or an answer that had none.
struct Tried {
  std::string key;                 // of its step
  std::string source;              // empty: the answer had no code
  std::optional<Verdict> verdict;  // nullopt: it was not judged
  std::string trouble;             // why it has no source, or no verdict
  std::string idea;                // in English; may be empty
};

struct Question {
  // "draft" from nothing, "idea" in English, "realise" an idea, "refine" a candidate, "repair" one
  // that fails, "cross" two, "ablate" one: without one of its tricks, "port" one that was judged
  // elsewhere.
  std::string operation;
  std::vector<const Tried*> parents;
  std::vector<const Tried*> tried;  // before, oldest first
  std::string idea;                 // to realise
  const Tried* origin = nullptr;    // "port": the parent, with its verdict from elsewhere
};

class Writer {
 public:
  virtual ~Writer() = default;
  // The prompt, but for its key and seed.
  virtual Prompt Ask(const Question& question) const = 0;
  // The candidate's source; its file is named `CandidateName()`. The error says what is wrong with
  // the answer, in words for the next prompt. `parent`: what it was asked to change; may be empty.
  virtual std::expected<std::string, std::string> ReadCode(const Answer& answer,
                                                           const std::string& parent) const = 0;
  // The idea of an answer to "idea": one paragraph; empty: none.
  virtual std::string ReadIdea(const Answer& answer) const = 0;
  virtual std::string CandidateName() const = 0;  // "candidate.cpp"
};

}  // namespace assay
