// The writer of searches by language models: prompts from templates, candidates out of answers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/machine_profile.h"
#include "model/problem.h"
#include "search/prompt.h"
#include "search/writer.h"
#include "toolchain/build.h"

namespace assay {

struct PromptWriterTerms {
  ProblemRequest problem;
  std::vector<std::string> signature;  // as in a worker's description
  std::string form = "native";         // or "device", "python"
  MachineProfile machine;
  int64_t prompt_tokens = 16'000, answer_tokens = 16'384;
  double temperature = 1;
  // The machine code of a candidate, for feedback; may give none.
  std::function<NativeCode(const CandidateSource&)> read_code = [](const CandidateSource&) {
    return NativeCode();
  };
};

class PromptWriter : public Writer {
 public:
  // Errors (kUsage): a prompt from nothing does not fit, or the form is unknown.
  static Result<PromptWriter> Make(PromptTemplates templates, PromptWriterTerms terms);

  Prompt Ask(const Question& question) const override;
  std::expected<std::string, std::string> ReadCode(const Answer& answer,
                                                   const std::string& parent) const override;
  std::string ReadIdea(const Answer& answer) const override;
  std::string CandidateName() const override;

 private:
  PromptWriter(PromptTemplates templates, PromptWriterTerms terms)
      : templates_(std::move(templates)), terms_(std::move(terms)) {}
  PromptParent ParentOf(const Tried& tried) const;

  PromptTemplates templates_;
  PromptWriterTerms terms_;
};

// Before a prompt that follows an answer without code.
std::string NoCodeNote(const std::string& trouble);

}  // namespace assay
