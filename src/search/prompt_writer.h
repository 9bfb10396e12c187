// Writes the prompts of a search from templates, and reads candidates out of answers. The facts
// that a prompt names are those that the search was begun with.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "search/prompt.h"
#include "search/writer.h"

namespace assay {

struct WriterTerms {
  ProblemRequest problem;
  std::string form = "native";         // or "device", "python"
  std::vector<std::string> signature;  // a line an argument
  std::string machine;                 // MachineText(); may be empty
  MachineProfile profile;              // of `assay doctor`; may be empty
  int64_t prompt_tokens_max = 12'000;
  int64_t answer_tokens_max = 8'192;
  double temperature = 1;
  // The machine code of a candidate, for what it teaches; nullopt: not known.
  std::function<std::optional<NativeCode>(const std::string& source)> read_code =
      [](const std::string&) { return std::nullopt; };
};

// The suffix of a candidate's file of this form, ".cpp". Errors (kUsage): no form has this name.
Result<std::string> SuffixOfForm(const std::string& form);

class PromptWriter : public Writer {
 public:
  // Errors (kUsage): a prompt for this problem cannot be built, or has too many tokens.
  static Result<PromptWriter> Make(PromptTemplates templates, WriterTerms terms);

  Prompt Ask(const Question& question) const override;
  std::expected<std::string, std::string> ReadCode(const Answer& answer,
                                                   const std::string& parent) const override;
  std::string ReadIdea(const Answer& answer) const override;
  std::string CandidateName() const override;

 private:
  PromptWriter(PromptTemplates templates, WriterTerms terms)
      : templates_(std::move(templates)), terms_(std::move(terms)) {}
  Result<BuiltPrompt> Build(const Question& question) const;
  PromptParent ParentOf(const Attempt& attempt) const;

  PromptTemplates templates_;
  WriterTerms terms_;
};

}  // namespace assay
