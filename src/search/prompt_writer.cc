#include "search/prompt_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "model/outcome.h"
#include "propose/code_of_answer.h"
#include "search/step.h"

namespace assay {
namespace {

constexpr size_t kIdeaCharactersMax = 600;

struct FormFacts {
  std::string_view name, suffix;
  CodeForm code;
};
constexpr std::array kForms = {FormFacts{"native", ".cpp", CodeForm::kNative},
                               FormFacts{"device", ".cu", CodeForm::kDevice},
                               FormFacts{"python", ".py", CodeForm::kPython}};

const FormFacts* FindForm(std::string_view name) {
  const auto found = std::ranges::find(kForms, name, &FormFacts::name);
  return found == kForms.end() ? nullptr : &*found;
}

PromptOperator OperatorOf(std::string_view operation) {
  if (operation == "idea") return PromptOperator::kIdea;
  if (operation == "refine") return PromptOperator::kRefine;
  if (operation == "repair") return PromptOperator::kRepair;
  if (operation == "cross") return PromptOperator::kCrossover;
  return PromptOperator::kImplement;  // "draft", "realise"
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// Its idea, or else its first line of comment.
std::string IdeaOf(const Attempt& attempt) {
  if (!attempt.idea.empty()) return attempt.idea;
  const std::string_view source = attempt.source;
  for (size_t at = 0; at < source.size();) {
    const size_t end = std::min(source.find('\n', at), source.size());
    const std::string_view line = Trimmed(source.substr(at, end - at));
    for (const std::string_view mark : {"// ", "# "})
      if (line.starts_with(mark)) return std::string(line.substr(mark.size()));
    at = end + 1;
  }
  return {};
}

std::string OutcomeText(const Attempt& attempt) {
  if (!attempt.verdict) return attempt.source.empty() ? "no code" : "not judged";
  const Ratio ratio = RatioOf(*attempt.verdict);
  const auto outcome = OutcomeName(attempt.verdict->outcome);
  return ratio.value > 0 ? fmt::format("{}, {:.3g}x", outcome, ratio.value) : std::string(outcome);
}

}  // namespace

Result<std::string> SuffixOfForm(const std::string& form) {
  if (const FormFacts* facts = FindForm(form)) return std::string(facts->suffix);
  return UsageError(fmt::format("--form {}: give native, device or python", form));
}

Result<PromptWriter> PromptWriter::Make(PromptTemplates templates, WriterTerms terms) {
  ASSAY_RETURN_IF_ERROR(SuffixOfForm(terms.form));
  PromptWriter writer(std::move(templates), std::move(terms));
  for (const char* operation : {"draft", "idea"})
    ASSAY_RETURN_IF_ERROR(writer.Build({operation, {}, {}, ""}));
  return writer;
}

PromptParent PromptWriter::ParentOf(const Attempt& attempt) const {
  PromptParent parent{attempt.source, {}};
  if (!attempt.verdict) {
    if (!attempt.trouble.empty()) parent.feedback.push_back({"outcome", attempt.trouble});
    return parent;
  }
  const bool timed = RatioOf(*attempt.verdict).value > 0;
  const auto code = timed ? terms_.read_code(attempt.source) : std::nullopt;
  parent.feedback =
      FeedbackOf({*attempt.verdict, attempt.source, code ? &*code : nullptr, &terms_.profile});
  return parent;
}

Result<BuiltPrompt> PromptWriter::Build(const Question& question) const {
  PromptSubject subject{terms_.problem};
  subject.signature = terms_.signature;
  subject.form = terms_.form;
  subject.machine = terms_.machine;
  subject.idea = question.idea;
  std::vector<const Attempt*> all = question.tried;
  all.insert(all.end(), question.parents.begin(), question.parents.end());
  for (const Attempt* attempt : all)
    if (attempt->verdict && attempt->verdict->speed) subject.target = TargetText(*attempt->verdict);
  for (const Attempt* attempt : question.parents) subject.parents.push_back(ParentOf(*attempt));
  for (const Attempt* attempt : question.tried)
    if (std::string idea = IdeaOf(*attempt); !idea.empty())
      subject.tried.push_back({std::move(idea), OutcomeText(*attempt)});
  return BuildPrompt(templates_, OperatorOf(question.operation), subject, terms_.prompt_tokens_max);
}

Prompt PromptWriter::Ask(const Question& question) const {
  auto built = Build(question);
  // A parent's source may be too long for any prompt: then one begins anew.
  if (!built) built = Build({"draft", {}, {}, question.idea});
  ASSAY_CHECK(built.has_value());  // Make() has built one
  Prompt prompt;
  prompt.system = std::move(built->system);
  prompt.text = std::move(built->text);
  prompt.temperature = terms_.temperature;
  prompt.answer_tokens_max = terms_.answer_tokens_max;
  return prompt;
}

std::expected<std::string, std::string> PromptWriter::ReadCode(const Answer& answer,
                                                               const std::string& parent) const {
  auto code = CodeOfAnswer(answer.text, FindForm(terms_.form)->code, parent);
  if (!code) return std::unexpected(std::move(code).error());
  return std::move(code->source);
}

std::string PromptWriter::ReadIdea(const Answer& answer) const {
  std::string_view text = Trimmed(answer.text);
  text = Trimmed(text.substr(0, text.find("\n\n")));
  return std::string(text.substr(0, kIdeaCharactersMax));
}

std::string PromptWriter::CandidateName() const {
  return fmt::format("candidate{}", FindForm(terms_.form)->suffix);
}

}  // namespace assay
