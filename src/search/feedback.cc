#include "search/feedback.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/decision_text.h"
#include "report/kernel_facts.h"
#include "report/probe_text.h"
#include "report/text.h"
#include "report/wrong_element.h"
#include "toolchain/build.h"
#include "toolchain/lines.h"

namespace assay {
namespace {

constexpr size_t kErrorsMax = 4;
constexpr size_t kLogTailBytes = 1200;
constexpr size_t kMessageBytesMax = 500;
constexpr int kColumnsMax = 160;

std::string Short(std::string_view text) {
  return Printable(text.substr(0, std::min(text.size(), kMessageBytesMax)), true);
}

std::string LineOf(std::string_view source, int line) {
  std::string_view text;
  for (int i = 0; i < line && !source.empty(); ++i) text = TakeLine(source);
  return Shortened(Printable(text, true), kColumnsMax, false);
}

std::string OutcomeText(const Verdict& verdict) {
  const std::string_view name = OutcomeName(verdict.outcome);
  std::string_view message = verdict.message;
  if (message.starts_with(name) && message.substr(name.size()).starts_with(": "))
    message.remove_prefix(name.size() + 2);
  std::string text = fmt::format("Verdict: {}: {}.", name, Short(message));
  if (verdict.foul)
    text += fmt::format("\nRule that it broke: {}. Seen: {}", verdict.foul->rule,
                        Short(verdict.foul->seen));
  return text;
}

// The compiler's part of a log.
std::string_view CompilerLog(const Verdict& verdict) {
  return std::string_view(verdict.log).substr(0, verdict.log.find(kPrintedHeading));
}

// The end of a Python candidate's traceback: what it raised, while it was built.
std::string LogTail(std::string_view log) {
  if (log.size() > kLogTailBytes) {
    log.remove_prefix(log.size() - kLogTailBytes);
    TakeLine(log);
  }
  std::string text;
  while (!log.empty()) {
    const std::string line = Shortened(Printable(TakeLine(log), true), kColumnsMax, false);
    if (!line.empty()) text += "    " + line + "\n";
  }
  if (!text.empty()) text.pop_back();
  return text;
}

std::string Errors(const FeedbackSubject& subject) {
  const Verdict& verdict = subject.verdict;
  if (verdict.outcome != Outcome::kBuildFailed) return {};
  std::string text;
  for (const CompilerError& error : CompilerErrors(CompilerLog(verdict), kErrorsMax))
    text += fmt::format("{}line {}: {}\n    {}", text.empty() ? "" : "\n", error.line,
                        error.message, LineOf(subject.source, error.line));
  if (text.empty() && verdict.candidate.form == CandidateForm::kPython)
    text = LogTail(CompilerLog(verdict));
  return text.empty() ? text : "Errors at its lines:\n" + text;
}

std::string FirstMismatch(const Verdict& verdict) {
  const Mismatch& mismatch = *verdict.correctness->first_mismatch;
  std::string text =
      fmt::format("First wrong element: {}[{}]", mismatch.output, fmt::join(mismatch.index, ", "));
  // Constant weights stay for a whole session, and an output's value tells of them.
  if (verdict.problem.weights.value_or(WeightsKind::kVaried) == WeightsKind::kVaried) {
    // Three digits tell the kind of a mistake.
    const auto [expected, got] = TextsOf(mismatch, 3);
    text += fmt::format(": {} instead of {}", got, expected);
  }
  return text +
         fmt::format(". Wrong elements of this output: {}.", FormatShare(mismatch.share_wrong));
}

// "Passed: ordinary, ties. Failed: huge-scale."
std::string Draws(const Correctness& correctness) {
  std::map<std::string, bool> kinds;  // true: some draw of this kind failed
  for (const DrawRecord& draw : correctness.draws) {
    const bool failed = draw.result == "failed";
    if (!failed && draw.result != "passed") continue;
    const std::string kind = draw.set.empty() ? draw.kind : draw.kind + " at another size";
    const bool before = kinds[kind];
    kinds[kind] = before || failed;
  }
  std::vector<std::string> passed, failed;
  for (const auto& [kind, fails] : kinds) (fails ? failed : passed).push_back(kind);
  std::string text;
  if (!passed.empty())
    text += fmt::format(" Kinds of inputs that passed: {}.", fmt::join(passed, ", "));
  if (!failed.empty()) text += fmt::format(" Failed: {}.", fmt::join(failed, ", "));
  return text;
}

std::string Wrong(const Verdict& verdict) {
  if (!verdict.correctness || verdict.correctness->passed) return {};
  const Correctness& correctness = *verdict.correctness;
  std::string text;
  if (!correctness.hint.empty() && !verdict.message.contains(correctness.hint))
    text = "Hint: " + Short(correctness.hint) + ".\n";
  if (correctness.first_mismatch) text += FirstMismatch(verdict);
  text += Draws(correctness);
  if (correctness.right_with_weights)
    text += " It would be right if weights were the same in all calls; here they are not.";
  return std::string(TrimSpace(text));
}

const BaselineResult* Headline(const Verdict& verdict) {
  if (!verdict.speed) return nullptr;
  const auto found = verdict.speed->baselines.find(verdict.speed->headline);
  return found == verdict.speed->baselines.end() || found->second.candidate_time_ns <= 0
             ? nullptr
             : &found->second;
}

std::string SpeedText(const Verdict& verdict) {
  if (Headline(verdict) == nullptr) return {};
  std::string text;
  for (const auto& [name, result] : verdict.speed->baselines) {
    if (result.candidate_time_ns <= 0) continue;
    text += fmt::format("{}{:.4g}x as fast as {}, {}: {} takes {} a call, this candidate {}.",
                        text.empty() ? "" : "\n", result.speedup, name, IntervalText(result), name,
                        FormatDuration(result.time_ns), FormatDuration(result.candidate_time_ns));
    if (result.certified_speedup > 1)
      text += fmt::format(" Certified: {:.4g}x.", result.certified_speedup);
    else if (result.speedup > 1)
      text += " No gain is certified.";
    if (!result.note.empty()) text += " Note: " + Short(result.note) + ".";
  }
  return text;
}

std::string WorkText(const Verdict& verdict) {
  const Work& work = *verdict.work;
  std::string text = fmt::format("A call must move {} ({} of it results)", FormatBytes(work.bytes),
                                 FormatBytes(work.written_bytes));
  if (work.operations > 0)
    text += fmt::format(" and do {} operations of arithmetic", FormatCount(work.operations));
  if (work.unfused_bytes > work.bytes)
    text += fmt::format("; the reference's operators move {} one by one",
                        FormatBytes(work.unfused_bytes));
  return text + ".";
}

std::string Bound(const Verdict& verdict) {
  std::string text;
  if (verdict.work && verdict.work->bytes > 0) text = WorkText(verdict);
  const BaselineResult* result = Headline(verdict);
  if (!verdict.roofline || verdict.roofline->bound_ns <= 0 || result == nullptr) return text;
  const Roofline& roofline = *verdict.roofline;
  text += fmt::format(
      " By this machine's measured ceilings it takes {} at least ({}). This candidate reaches "
      "{:.3g}% of that, {} {:.3g}%.",
      FormatDuration(roofline.bound_ns), roofline.regime, roofline.percent_of_peak,
      verdict.speed->headline, roofline.reference_percent_of_peak);
  if (roofline.percent_of_peak > 100 && !roofline.note.empty())
    text += " Note: " + Short(roofline.note) + ".";
  const double headroom = result->candidate_time_ns / roofline.bound_ns;
  if (headroom > 1) text += fmt::format(" Headroom: {:.3g}x over this candidate.", headroom);
  return std::string(TrimSpace(text));
}

// The memory that one call's data fit in.
std::string WorkingSet(const Verdict& verdict, const MachineProfile& machine) {
  if (!verdict.work || verdict.work->bytes <= 0 || !verdict.machine.gpu.empty() ||
      machine.caches.empty())
    return {};
  for (const CacheLevel& cache : machine.caches)
    if (verdict.work->bytes <= static_cast<double>(cache.size_bytes))
      return fmt::format("Its data ({}) fit the L{} cache ({}).", FormatBytes(verdict.work->bytes),
                         cache.level, FormatBytes(static_cast<double>(cache.size_bytes)));
  const CacheLevel& last = machine.caches.back();
  return fmt::format("Its data ({}) fit no cache (L{}: {}).", FormatBytes(verdict.work->bytes),
                     last.level, FormatBytes(static_cast<double>(last.size_bytes)));
}

std::string LoopText(const NativeCode& code, const Verdict& verdict) {
  std::string text;
  if (code.loop) {
    const NativeLoop& loop = *code.loop;
    text = fmt::format(
        "Hot loop, by its machine code (lines {} to {}): {} instructions; arithmetic on vectors "
        "{}{}, on scalars {}; divisions and roots {}; loads and stores on the stack {}; calls {}.",
        loop.first_line, loop.last_line, loop.instructions, loop.on_vectors,
        loop.vector_bits > 0 ? fmt::format(" (up to {} bits)", loop.vector_bits) : "",
        loop.on_scalars, loop.divisions, loop.spills,
        loop.calls.empty() ? "none" : fmt::format("{}", fmt::join(loop.calls, ", ")));
  }
  if (verdict.machine.threads > 1)
    text += fmt::format(" It {} threads of its own; it may use {}.",
                        code.starts_threads ? "starts" : "starts no", verdict.machine.threads);
  return std::string(TrimSpace(text));
}

std::string Kernels(const Verdict& verdict) {
  constexpr size_t kKernelsMax = 4;
  std::string text;
  for (size_t i = 0; i < std::min(verdict.kernels.size(), kKernelsMax); ++i) {
    text += fmt::format("{}kernel {}", text.empty() ? "" : "\n", Short(verdict.kernels[i].name));
    for (const auto& [label, fact] : KernelFacts(verdict.kernels[i]))
      text += fmt::format("; {} {}", label, fact);
  }
  return text;
}

// Not why there are none: a tool's report may have what the candidate printed.
std::string Counters(const Verdict& verdict) {
  constexpr size_t kKernelsMax = 4;
  if (!verdict.profile || !IsCorrect(verdict.outcome)) return {};
  const std::vector<KernelProfile>& kernels = verdict.profile->kernels;
  if (kernels.empty())
    return "Nsight Compute read no counters: profile.failure of the verdict says why.";
  std::string text = "Counters of one call, by Nsight Compute:";
  for (size_t i = 0; i < std::min(kernels.size(), kKernelsMax); ++i) {
    text += fmt::format("\nkernel {}", Short(kernels[i].name));
    for (const auto& [label, fact] : ProfileFacts(kernels[i]))
      text += fmt::format("; {}: {}", label, fact);
  }
  return text;
}

std::string Code(const FeedbackSubject& subject) {
  if (!subject.verdict.kernels.empty()) return Kernels(subject.verdict);
  if (Headline(subject.verdict) == nullptr) return {};
  std::string text = subject.code != nullptr ? LoopText(*subject.code, subject.verdict) : "";
  if (subject.machine != nullptr) text += " " + WorkingSet(subject.verdict, *subject.machine);
  return std::string(TrimSpace(text));
}

std::string Bottleneck(const FeedbackSubject& subject) {
  std::string found = subject.verdict.bottleneck;
  if (found.empty() && subject.code != nullptr)
    found = NativeBottleneck(subject.verdict, *subject.code);
  return found.empty() ? found : "Most likely limit: " + Short(found) + ".";
}

}  // namespace

std::vector<FeedbackPart> FeedbackOf(const FeedbackSubject& subject) {
  std::vector<FeedbackPart> parts;
  const auto add = [&](const char* name, std::string text) {
    if (!text.empty()) parts.push_back({name, std::move(text)});
  };
  add("outcome", OutcomeText(subject.verdict));
  add("errors", Errors(subject));
  add("mismatch", Wrong(subject.verdict));
  add("speed", SpeedText(subject.verdict));
  add("bottleneck", Bottleneck(subject));
  add("probes", ProbeText(subject.verdict));
  add("counters", Counters(subject.verdict));
  add("bound", Bound(subject.verdict));
  add("code", Code(subject));
  return parts;
}

std::string FeedbackText(const std::vector<FeedbackPart>& parts) {
  std::string text;
  for (const FeedbackPart& part : parts) text += (text.empty() ? "" : "\n\n") + part.text;
  return text;
}

}  // namespace assay
