#include "search/prompt_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "answer/code_of_answer.h"
#include "model/outcome.h"
#include "toolchain/lines.h"

namespace assay {
namespace {

CodeForm FormOf(std::string_view form) {
  if (form == "device") return CodeForm::kDevice;
  return form == "python" ? CodeForm::kPython : CodeForm::kNative;
}

// What came of an answer, in one line.
std::string OutcomeOf(const Tried& tried) {
  if (!tried.verdict) return tried.trouble.empty() ? "not judged" : tried.trouble;
  return fmt::format("{}: {}", OutcomeName(tried.verdict->outcome), tried.verdict->message);
}

PromptOperator OperatorOf(const Question& question) {
  if (question.operation == "idea") return PromptOperator::kIdea;
  if (question.operation == "cross" && question.parents.size() > 1)
    return PromptOperator::kCrossover;
  if (question.parents.empty()) return PromptOperator::kImplement;
  if (question.operation == "ablate") return PromptOperator::kAblate;
  if (question.operation == "port" && question.origin != nullptr) return PromptOperator::kPort;
  return question.operation == "repair" ? PromptOperator::kRepair : PromptOperator::kRefine;
}

}  // namespace

std::string NoCodeNote(const std::string& trouble) {
  return "The last answer had no code that can be used: " + trouble + "\n\n";
}

Result<PromptWriter> PromptWriter::Make(PromptTemplates templates, PromptWriterTerms terms) {
  PromptWriter writer(std::move(templates), std::move(terms));
  PromptSubject subject{writer.terms_.problem};
  subject.signature = writer.terms_.signature;
  subject.form = writer.terms_.form;
  ASSAY_RETURN_IF_ERROR(BuildPrompt(writer.templates_, PromptOperator::kImplement, subject,
                                    writer.terms_.prompt_tokens));
  return writer;
}

PromptParent PromptWriter::ParentOf(const Tried& tried) const {
  PromptParent parent{tried.source, {}};
  if (!tried.verdict) {
    parent.feedback = {{"outcome", "It was not judged: " + tried.trouble}};
    return parent;
  }
  NativeCode code;
  if (tried.verdict->speed)
    if (const auto source = CandidateFromText(CandidateName(), tried.source))
      code = terms_.read_code(*source);
  parent.feedback = FeedbackOf({*tried.verdict, tried.source, &code, &terms_.machine});
  return parent;
}

Prompt PromptWriter::Ask(const Question& question) const {
  PromptSubject subject{terms_.problem};
  subject.signature = terms_.signature;
  subject.form = terms_.form;
  subject.idea = question.idea;
  std::string note;
  for (const Tried* tried : question.tried)
    subject.tried.push_back(
        {tried->idea.empty() ? "answer " + tried->key : tried->idea, OutcomeOf(*tried)});
  for (const auto& group : {question.tried, question.parents})
    for (const Tried* tried : group)
      if (tried->verdict) {
        subject.machine = MachineText(tried->verdict->machine, terms_.machine);
        if (std::string target = TargetText(*tried->verdict); !target.empty())
          subject.target = std::move(target);
      }
  Question asked = question;
  std::erase_if(asked.parents, [&](const Tried* parent) {
    if (!parent->source.empty()) return false;
    note = NoCodeNote(parent->trouble);
    return true;
  });
  for (const Tried* parent : asked.parents) subject.parents.push_back(ParentOf(*parent));
  if (asked.origin != nullptr && asked.origin->verdict && !asked.parents.empty()) {
    const Verdict& there = *asked.origin->verdict;
    // Without this machine's profile, and the code that is built here.
    subject.parents.push_back({asked.origin->source, FeedbackOf({there, asked.origin->source})});
    subject.origin = OriginText(there);
  }
  auto built = BuildPrompt(templates_, OperatorOf(asked), subject, terms_.prompt_tokens);
  if (!built) {
    // The parents are too long for any prompt: from nothing, which was tried when this was made.
    subject.parents.clear();
    subject.idea.clear();
    built = BuildPrompt(templates_, PromptOperator::kImplement, subject, terms_.prompt_tokens);
  }
  Prompt prompt;
  prompt.system = built->system;
  prompt.text = note + built->text;
  prompt.temperature = terms_.temperature;
  prompt.answer_tokens_max = terms_.answer_tokens;
  return prompt;
}

std::expected<std::string, std::string> PromptWriter::ReadCode(const Answer& answer,
                                                               const std::string& parent) const {
  auto code = CodeOfAnswer(answer.text, FormOf(terms_.form), parent);
  if (!code) return std::unexpected(std::move(code.error()));
  // A name, a size, or launch lines that no build would take.
  if (const auto source = CandidateFromText(CandidateName(), code->source); !source)
    return std::unexpected(source.error().message);
  return std::move(code->source);
}

std::string PromptWriter::ReadIdea(const Answer& answer) const {
  constexpr size_t kIdeaBytesMax = 1200;
  std::string_view text = answer.text;
  // Reasoning that was not told apart.
  constexpr std::string_view kEnd = "</think>";
  if (const size_t end = text.rfind(kEnd); end != std::string_view::npos)
    text.remove_prefix(end + kEnd.size());
  std::string idea;
  while (!text.empty() && idea.size() < kIdeaBytesMax) {
    const std::string_view line = TrimSpace(TakeLine(text));
    if (line.starts_with("```")) break;
    if (!line.empty()) idea += (idea.empty() ? "" : " ") + std::string(line);
  }
  if (idea.size() > kIdeaBytesMax) {
    size_t end = kIdeaBytesMax;
    while (end > 0 && (static_cast<unsigned char>(idea[end]) & 0xc0) == 0x80) --end;
    idea.resize(end);  // not within a character
  }
  return idea;
}

std::string PromptWriter::CandidateName() const {
  if (terms_.form == "python") return "candidate.py";
  return terms_.form == "device" ? "candidate.cu" : "candidate.cpp";
}

}  // namespace assay
