#include "report/next_step.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "model/dtype.h"
#include "problem/gradients.h"
#include "report/text.h"

namespace assay {
namespace {

// The highest usual threshold that this result should still pass, above the one that it passed; 0
// where none is.
double NextThreshold(const Speed& speed) {
  const auto result = speed.baselines.find(speed.headline);
  double next = 0;
  if (result == speed.baselines.end()) return next;
  for (const double threshold : {1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0})
    if (threshold > speed.threshold && threshold < result->second.ci_low) next = threshold;
  return next;
}

// --tolerance and --precision, where they are not what the problem's dtype asks for.
std::string ComparisonFlags(const ProblemRecord& problem, const Correctness& correctness) {
  std::string flags;
  if (correctness.tolerance.starts_with("allclose"))
    flags += " --tolerance " + ShellQuoted(correctness.tolerance);
  const auto dtype = DTypeFromName(problem.dtype);
  const auto required = PrecisionClassFromName(correctness.required_class);
  if (dtype && required && *required != NativeClass(*dtype) && *required != PrecisionClass::kExact)
    flags += " --precision " + ShellQuoted(correctness.required_class);
  return flags;
}

// --baseline, the headline first; nothing for eager alone, which is the default, or for another
// candidate.
std::string BaselineFlag(const Speed& speed) {
  std::string names = speed.headline;
  if (names == kBestBaseline) return " --baseline " + names;
  for (const auto& [name, result] : speed.baselines)
    if (name != speed.headline) names += "," + name;
  return names == "eager" || speed.headline == "against" ? std::string()
                                                         : " --baseline " + ShellQuoted(names);
}

// A name for the next version beside the candidate: softmax.cpp -> softmax_next.cpp.
std::string NextVersion(const std::string& path) {
  std::filesystem::path next(path);
  next.replace_filename(next.stem().string() + "_next" + next.extension().string());
  return next.string();
}

// How a person names it: a problem of an installed suite by its name.
std::string ProblemWord(const ProblemRecord& problem) {
  const bool installed = problem.level != 0 && problem.path.starts_with('/');
  const std::string name =
      HasGradients(problem) ? NameWithoutGradients(problem.name) : problem.name;
  return ShellQuoted(problem.path.empty() || installed ? name : problem.path);
}

}  // namespace

std::string JudgeCommand(const Verdict& verdict, const std::string& candidate,
                         const std::string& extra) {
  const ProblemRecord& problem = verdict.problem;
  std::string command = "assay judge " + ProblemWord(problem);
  command += " " + ShellQuoted(candidate);
  if (HasGradients(problem)) command += " --grad";
  // A named size stands for its constants.
  if (!problem.size.empty()) command += " --size " + ShellQuoted(problem.size);
  if (problem.size.empty())
    for (const auto& [name, value] : problem.set)
      command += " --set " + ShellQuoted(name + "=" + value);
  if (verdict.correctness) command += ComparisonFlags(problem, *verdict.correctness);
  if (problem.weights && *problem.weights != WeightsKind::kVaried)
    command += fmt::format(" --weights {}", WeightsKindName(*problem.weights));
  if (verdict.speed && !extra.starts_with("--against")) command += BaselineFlag(*verdict.speed);
  if (verdict.speed && verdict.speed->headline == "against" && verdict.speed->against &&
      !extra.starts_with("--against"))
    command += " --against " + ShellQuoted(verdict.speed->against->path);
  if (!extra.empty()) command += " " + extra;
  return command;
}

namespace {

// A failing draw can be made again from its seed; a failing timed call was on values of its own.
bool HasFailedDraw(const Verdict& verdict) {
  if (!verdict.correctness) return false;
  for (const DrawRecord& draw : verdict.correctness->draws)
    if (draw.result == "failed") return true;
  return false;
}

// Native candidates can be judged against each other directly; Python ones against the reference
// only.
NextStep CompareWithNextVersion(const Verdict& verdict) {
  const std::string& path = verdict.candidate.path;
  if (verdict.candidate.form != CandidateForm::kNative)
    return {"write the next version, then", JudgeCommand(verdict, NextVersion(path), "")};
  return {"write the next version: does it beat this one?",
          JudgeCommand(verdict, NextVersion(path), "--against " + ShellQuoted(path))};
}

// Of a candidate that is right with other weights.
std::optional<NextStep> AllowedWeights(const Verdict& verdict) {
  if (!verdict.correctness || !verdict.correctness->right_with_weights) return std::nullopt;
  Verdict allowing = verdict;
  allowing.problem.weights = verdict.correctness->right_with_weights;
  const bool constructed = allowing.problem.weights == WeightsKind::kConstructed;
  return NextStep{constructed ? "judge it on the weights that constructors make"
                              : "allow it to prepare its weights once",
                  JudgeCommand(allowing, verdict.candidate.path, "")};
}

// If speed was not measured, the problem tells no kernel from one that computes nothing.
NextStep AfterUnsettled(const Verdict& verdict, const std::string& again) {
  if (verdict.cause == Cause::kLongCalls)
    return {"with more time, as said above, or at a smaller size", again};
  const auto see = [&verdict](const std::string& what) {
    const ProblemRecord& problem = verdict.problem;
    std::string audit = "assay audit " + ProblemWord(problem);
    if (!problem.size.empty()) audit += " --size " + ShellQuoted(problem.size);
    if (problem.size.empty())
      for (const auto& [name, value] : problem.set)
        audit += " --set " + ShellQuoted(name + "=" + value);
    return NextStep{what, audit};
  };
  if (!verdict.speed)
    return see(HasGradients(verdict.problem) ? "see which wrong candidates its forward lets pass"
                                             : "see which wrong candidates this problem lets pass");
  const auto result = verdict.speed->baselines.find(verdict.speed->headline);
  const bool known = result != verdict.speed->baselines.end();
  if (known && result->second.why_unsettled) {
    const WhyUnsettled& why = *result->second.why_unsettled;
    if (why.cause == UnsettledCause::kUnseen) return see("see which values would show it");
    if (why.cause == UnsettledCause::kBudget)
      return {why.disturbed ? "stop other programs on this machine, and give it more time"
                            : "give it more time",
              JudgeCommand(verdict, verdict.candidate.path,
                           fmt::format("--budget {:g}", why.budget_s))};
    const bool noisy =
        why.cause == UnsettledCause::kNoise || why.cause == UnsettledCause::kDisturbed;
    return {noisy ? "stop other programs on this machine, then" : "read the note above, then",
            again};
  }
  const bool noise = !known || result->second.note.empty() || result->second.disturbed_share > 0;
  return {noise ? "stop other programs on this machine, then" : "read the note above, then", again};
}

}  // namespace

NextStep NextStepAfter(const Verdict& verdict, bool saved, bool here) {
  const std::string& path = verdict.candidate.path;
  const std::string file = std::filesystem::path(path).filename().string();
  const std::string again = JudgeCommand(verdict, path, "");
  switch (verdict.outcome) {
    case Outcome::kFaster:
      if (const double threshold = verdict.speed ? NextThreshold(*verdict.speed) : 0; threshold > 0)
        return {fmt::format("ask for more than {:g}x", threshold),
                JudgeCommand(verdict, path, fmt::format("--p {}", threshold))};
      return CompareWithNextVersion(verdict);
    case Outcome::kSlower:
    case Outcome::kTie:
    case Outcome::kNotFaster:
      return CompareWithNextVersion(verdict);
    case Outcome::kCorrect:
      return {"see whether it is faster", again};
    case Outcome::kUnsettled:
      // Its programs and its budget are not the reader's.
      if (!here) return {"its speed stayed open on that machine: submit it again later", ""};
      return AfterUnsettled(verdict, again);
    case Outcome::kWrong:
      if (const auto allowed = AllowedWeights(verdict)) return *allowed;
      if (saved && HasFailedDraw(verdict) && verdict.candidate.language != Language::kCuda &&
          verdict.machine.gpu.empty())
        return {"see the failing call", "assay explain " + ShellQuoted(verdict.id)};
      return {fmt::format("fix {}, then", file), again};
    case Outcome::kWeightsDiffer:
      if (const auto allowed = AllowedWeights(verdict)) return *allowed;
      return {"name its parameters as the reference does, then", again};
    case Outcome::kBuildFailed:
      return {verdict.line == 0 ? fmt::format("fix {}, then", file)
                                : fmt::format("fix line {} of {}, then", verdict.line, file),
              again};
    case Outcome::kCrashed:
    case Outcome::kTimedOut:
    case Outcome::kOutOfMemory:
      return {fmt::format("fix {}, then", file), again};
    case Outcome::kFoul:
      return {"remove what broke the rule, then", again};
  }
  return {};
}

}  // namespace assay
