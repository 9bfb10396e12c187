#include "search/prompt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "problem/gradients.h"
#include "report/text.h"
#include "rules/error_bounds.h"
#include "toolchain/directives.h"

namespace assay {
namespace {

struct FormFacts {
  std::string_view name, fence, language;
};
constexpr FormFacts kForms[] = {
    {"native", "cpp", "C++, for a processor"},
    {"device", "cuda", "CUDA C++, for an NVIDIA GPU"},
    {"python", "python", "Python: PyTorch, with kernels in Triton or C++"}};

const FormFacts* FindForm(std::string_view name) {
  for (const FormFacts& form : kForms)
    if (form.name == name) return &form;
  return nullptr;
}

// A block of code whose fence is longer than any run of backticks in it.
std::string Fenced(std::string_view code, std::string_view language) {
  size_t longest = 0, run = 0;
  for (const char c : code) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  const std::string fence(std::max<size_t>(3, longest + 1), '`');
  const bool ended = code.ends_with('\n');
  return fmt::format("{}{}\n{}{}{}", fence, language, code, ended ? "" : "\n", fence);
}

// Templates end in a line break; a part does not.
std::string Trimmed(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

std::string Arguments(const PromptSubject& subject) {
  std::string text;
  for (const std::string& line : subject.signature) text += "- " + line + "\n";
  if (!subject.problem.set.empty()) {
    std::vector<std::string> constants;
    for (const auto& [name, value] : subject.problem.set)
      constants.push_back(fmt::format("{} = {}", name, value));
    text += fmt::format("\nIt is timed with {}.", fmt::join(constants, ", "));
  }
  return Trimmed(text);
}

// The lines of outputs name their dtypes: the first one's.
std::string_view OutputDType(const PromptSubject& subject) {
  for (const std::string& line : subject.signature) {
    if (!line.starts_with("output ")) continue;
    const std::string_view rest =
        std::string_view(line).substr(line.rfind(' ', line.find('[')) + 1);
    return rest.substr(0, rest.find('['));
  }
  return {};
}

// The class of precision that outputs must reach.
std::string Precision(const PromptSubject& subject) {
  if (!subject.problem.precision.empty()) return subject.problem.precision;
  const std::string_view dtype = OutputDType(subject);
  return dtype.empty() ? "its dtype" : std::string(dtype);
}

// The file's text says it; the host that runs it decides.
bool HasOwnCheck(const ProblemRequest& problem) { return problem.source.contains("\ndef check("); }

// The bounds of errors, as gate 1 has them for a large output of a reference without errors.
std::string Tolerance(const PromptSubject& subject) {
  constexpr int64_t kMany = 1'000'000;
  if (HasOwnCheck(subject.problem)) return "The file's `check` decides which results are right.";
  if (subject.problem.tolerance.starts_with("allclose:")) {
    const std::string t = subject.problem.tolerance.substr(subject.problem.tolerance.find(':') + 1);
    return fmt::format("An element may differ from the reference's by {0} + {0} times its size.",
                       t);
  }
  const auto dtype = DTypeFromName(OutputDType(subject));
  const auto required = PrecisionClassFromName(Precision(subject));
  if (dtype && !IsFloatingPoint(*dtype)) return "Integers and booleans must be equal.";
  const PrecisionClass native = dtype ? NativeClass(*dtype) : PrecisionClass::kExact;
  if (!dtype || !required || *required >= PrecisionClass::kFloat8)
    return "The error is measured against float64.";
  const ErrorBounds bounds = BoundsFor(std::max(*required, native), native, {}, kMany);
  return fmt::format(
      "Measured against float64, an output's errors may be {:.3g} of its values (by root mean "
      "squares), an element's error {:.3g} of its own size plus its row's root mean square. The "
      "reference's own errors are allowed for.",
      bounds.norm, bounds.element);
}

// The rules that differ from problem to problem.
std::string Conditions(const ProblemRequest& problem) {
  const bool varied = problem.weights == WeightsKind::kVaried;
  std::string text =
      varied ? "- Inputs and parameters have new values in each call: results of earlier calls, or "
               "weights prepared in one, are wrong.\n"
             : "- Inputs have new values in each call. Parameters are the same in all calls: they "
               "may be prepared once.\n";
  std::vector<std::string> ranges;
  for (const auto& [name, range] : problem.ragged)
    ranges.push_back(fmt::format("{} from {} to {}", name, range.first, range.second));
  text += ranges.empty()
              ? std::string(
                    "- It is judged at these sizes, and may be at other sizes later: "
                    "read them from the arguments.\n")
              : fmt::format(
                    "- The same file is judged at other sizes, too, any mix of {} (ends included): "
                    "read them from the arguments.\n",
                    fmt::join(ranges, ", "));
  if (problem.special_values == "required")
    text += "- Where inputs are NaN or infinite, results are those of the reference.\n";
  if (HasOwnCheck(problem))
    text +=
        "- The reference's file has a `check` that judges the outputs of each call: whatever it "
        "accepts is right.\n";
  if (!problem.allow_libraries)
    text += "- No libraries such as BLAS: the work is done by the file's own code.\n";
  return Trimmed(text);
}

std::string Ideas(const std::vector<TriedIdea>& tried, size_t left_out) {
  std::string text;
  for (size_t i = left_out; i < tried.size(); ++i)
    text += fmt::format("- {}: {}\n", tried[i].idea, tried[i].outcome);
  return Trimmed(text);
}

// The parts that a prompt can do without, in the order in which they go.
struct LeftOut {
  bool second_feedback = false, code = false;
  size_t ideas = 0;
  bool example = false, machine = false, bound = false, target = false, budget = false;
};

std::string Feedback(const PromptParent& parent, const LeftOut& left_out) {
  std::vector<FeedbackPart> kept;
  for (const FeedbackPart& part : parent.feedback)
    if (!(left_out.code && part.name == "code") && !(left_out.bound && part.name == "bound"))
      kept.push_back(part);
  return FeedbackText(kept);
}

// Leaves out the next part that this prompt has; false: none is left.
bool LeaveOutNext(const PromptSubject& subject, PromptOperator which, LeftOut* left_out,
                  std::vector<std::string>* dropped) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(subject.parents, [&](const PromptParent& parent) {
      return std::ranges::any_of(parent.feedback,
                                 [&](const FeedbackPart& part) { return part.name == name; });
    });
  };
  const auto drop = [&](bool* flag, bool there, const char* name) {
    if (*flag || !there) return false;
    *flag = true;
    dropped->push_back(name);
    return true;
  };
  const bool two = which == PromptOperator::kCrossover ||
                   (which == PromptOperator::kPort && subject.parents.size() > 1);
  if (drop(&left_out->second_feedback, two, "second_feedback")) return true;
  if (drop(&left_out->code, has("code"), "code")) return true;
  if (left_out->ideas < subject.tried.size()) {
    if (left_out->ideas++ == 0) dropped->push_back("ideas");
    return true;
  }
  const bool worked = which != PromptOperator::kIdea && which != PromptOperator::kAblate &&
                      which != PromptOperator::kPort;
  return drop(&left_out->example, worked, "example") ||
         drop(&left_out->machine, !subject.machine.empty(), "machine") ||
         drop(&left_out->bound, has("bound"), "bound") ||
         drop(&left_out->target, !subject.target.empty(), "target") ||
         drop(&left_out->budget, !subject.budget.empty(), "budget");
}

// The problem's file as its author wrote it; with gradients also what is asked for besides.
std::string Reference(const PromptSubject& subject) {
  const ProblemRequest& problem = subject.problem;
  if (!HasGradients(problem)) return Fenced(problem.source, "python");
  std::string text = Fenced(SourceWithoutGradients(problem.source), "python") +
                     "\n\nForward and backward are judged as one call, against "
                     "`torch.autograd.grad` in float64. ";
  if (subject.form == "python")
    return text +
           "`ModelNew.forward` takes and returns what `Model.forward` takes and returns. The judge "
           "then asks autograd for the gradients of its floating-point inputs and parameters, for "
           "given gradients of its results. A `torch.autograd.Function` has a `backward` of your "
           "own.";
  return text +
         "Beside its inputs a call gets a gradient of each floating-point result, `gradient_1` and "
         "so on. Its outputs are the results of `forward`, then the gradients of the "
         "floating-point inputs, then those of the parameters, in these orders.";
}

PromptParts PartsOf(const PromptTemplates& templates, const PromptSubject& subject,
                    const std::string& entry, const LeftOut& left_out) {
  const FormFacts& form = *FindForm(subject.form);
  PromptParts parts;
  parts["problem"] = subject.problem.name;
  parts["reference"] = Reference(subject);
  parts["arguments"] = Arguments(subject);
  parts["entry"] = entry;
  parts["precision"] = Precision(subject);
  parts["tolerance"] = Tolerance(subject);
  parts["conditions"] = Conditions(subject.problem);
  parts["flags"] = AllowedFlags(subject.form == "device");
  parts["language"] = form.language;
  parts["idea"] = subject.idea;
  parts["origin"] = subject.origin;
  if (!subject.by_call)
    parts["answer"] = "Answer with the whole file in one fenced code block, and nothing after it.";
  parts["ideas"] = Ideas(subject.tried, left_out.ideas);
  if (!left_out.machine) parts["machine"] = subject.machine;
  if (!left_out.target) parts["target"] = subject.target;
  if (!left_out.budget) parts["budget"] = subject.budget;
  if (!subject.parents.empty()) {
    parts["parent"] = Fenced(subject.parents[0].source, form.fence);
    parts["feedback"] = Feedback(subject.parents[0], left_out);
  }
  if (subject.parents.size() > 1) {
    parts["second_parent"] = Fenced(subject.parents[1].source, form.fence);
    if (!left_out.second_feedback)
      parts["second_feedback"] = Feedback(subject.parents[1], left_out);
  }
  const auto filled = [&](const std::string& name) {
    return Trimmed(FillTemplate(templates.Text(name), parts));
  };
  parts["form"] = filled("form_" + subject.form);
  parts["rules"] = filled("rules");
  if (!left_out.example) parts["example"] = filled("example_" + subject.form);
  return parts;
}

size_t ParentsNeeded(PromptOperator which) {
  if (which == PromptOperator::kCrossover) return 2;
  return which == PromptOperator::kIdea || which == PromptOperator::kImplement ? 0 : 1;
}

Result<void> Check(PromptOperator which, const PromptSubject& subject) {
  if (FindForm(subject.form) == nullptr)
    return UsageError(fmt::format("form {}: prompts know native, device and python", subject.form));
  if (subject.parents.size() < ParentsNeeded(which))
    return UsageError(fmt::format("{} needs {}", PromptOperatorName(which),
                                  Counted(static_cast<int64_t>(ParentsNeeded(which)), "parent")));
  return {};
}

}  // namespace

std::string_view PromptOperatorName(PromptOperator which) {
  switch (which) {
    case PromptOperator::kIdea:
      return "idea";
    case PromptOperator::kImplement:
      return "implement";
    case PromptOperator::kRefine:
      return "refine";
    case PromptOperator::kRepair:
      return "repair";
    case PromptOperator::kCrossover:
      return "crossover";
    case PromptOperator::kAblate:
      return "ablate";
    case PromptOperator::kPort:
      return "port";
  }
  return {};
}

int64_t AboutTokens(std::string_view text) {
  constexpr size_t kCharacters = 4;
  return static_cast<int64_t>((text.size() + kCharacters - 1) / kCharacters);
}

Result<BuiltPrompt> BuildPrompt(const PromptTemplates& templates, PromptOperator which,
                                const PromptSubject& subject, int64_t tokens_max) {
  ASSAY_RETURN_IF_ERROR(Check(which, subject));
  ASSAY_ASSIGN_OR_RETURN(const std::string declaration,
                         EntryOf(subject.signature, subject.form, HasGradients(subject.problem)));
  const std::string entry = Fenced(declaration, FindForm(subject.form)->fence);
  BuiltPrompt built;
  LeftOut left_out;
  do {
    const PromptParts parts = PartsOf(templates, subject, entry, left_out);
    built.system = Trimmed(FillTemplate(templates.Text("system"), parts));
    built.text = Trimmed(FillTemplate(templates.Text(PromptOperatorName(which)), parts)) + "\n";
    built.tokens = AboutTokens(built.system) + AboutTokens(built.text);
    if (built.tokens <= tokens_max) return built;
  } while (LeaveOutNext(subject, which, &left_out, &built.dropped));
  return UsageError(
      fmt::format("a prompt for {} takes about {} tokens at least, and {} are allowed: allow more",
                  subject.problem.name, built.tokens, tokens_max));
}

}  // namespace assay
