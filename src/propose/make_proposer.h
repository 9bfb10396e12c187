// Makes the proposer that a user names.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "propose/proposer.h"

namespace assay {

struct ProposerOptions {
  std::string models_file = {};  // a table of models of the user's own (models.h); empty: none
  std::string key_file = {};     // holds the key; empty: it is in the environment, or there is none
  std::string record_file = {};  // a transcript that answers are added to; empty: none
  std::string provenance = {};   // written beside each recorded answer
  double timeout_s = 900;        // of one answer; an inbox awaits one for ever
  bool stream = true;
};

// `openai:MODEL[@URL]`, `anthropic:MODEL[@URL]`, `command:PROGRAM ARGUMENTS`, `inbox:FOLDER` or
// `replay:FILE` (docs/proposers.md). Keys are read here: from `key_file`, $ASSAY_API_KEY,
// $OPENAI_API_KEY or $ANTHROPIC_API_KEY. Errors: kUsage, kEnvironment.
Result<std::unique_ptr<Proposer>> MakeProposer(std::string_view text,
                                               const ProposerOptions& options);

// A line for each form, for lists and help.
std::string_view ProposerForms();

}  // namespace assay
