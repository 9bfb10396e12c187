// Asks whoever watches a folder: a person, or a program. A prompt appears as KEY.prompt.md, its
// answer is awaited as KEY.answer.md (docs/proposers.md).
#pragma once

#include <memory>
#include <string>

#include "propose/proposer.h"

namespace assay {

struct InboxTerms {
  double settle_s = 2;   // an answer that has not changed for so long is whole
  double timeout_s = 0;  // of an answer; 0: it is awaited until the search is stopped
  size_t answer_bytes_max = size_t{4} << 20;
};

// The file name of a prompt without its ending: letters, digits, '.', '_' and '-' as they are, '/'
// as '+', others as %XX; one that is too long ends with a hash.
std::string InboxName(const std::string& key);

// Answers that lie in the folder already are taken: a search that is started again asks nothing
// twice. Prompts and answers stay where they are.
class InboxProposer : public Proposer {
 public:
  // Makes the folder. Errors: kUsage (it cannot be made, or not be written to).
  static Result<std::unique_ptr<Proposer>> Open(std::string name, const std::string& folder,
                                                InboxTerms terms = {});
  std::string Name() const override { return name_; }
  Usage Reservation(const Prompt&) const override { return {}; }
  // Errors: kUsage (the answer there is to another prompt of this key), kEnvironment (none in time,
  // too large, the folder is gone), kInterrupted.
  Result<Answer> Propose(const Prompt& prompt, StopToken stop) override;

 private:
  InboxProposer(std::string name, std::string folder, InboxTerms terms)
      : name_(std::move(name)), folder_(std::move(folder)), terms_(terms) {}
  Result<void> Ask(const Prompt& prompt, const std::string& stem) const;
  Result<std::string> Await(const std::string& path, StopToken stop) const;

  const std::string name_, folder_;
  const InboxTerms terms_;
};

}  // namespace assay
