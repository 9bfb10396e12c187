#include "session/constructed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/trace.h"
#include "session/session.h"

namespace assay {

std::string DifferingWeights(const WeightsMatch& match) {
  if (!match.lacks_floats)
    return "its weights have other names than the reference's, and two of one shape may have "
           "changed places";
  return fmt::format("its weights differ from the reference's, of which it lacks {}",
                     MissingInWords(match));
}

namespace {

void AddNote(const std::string& text, std::string* note) {
  *note += (note->empty() ? "" : "; ") + text;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

// Of the outer session's memory, which its own values leave.
constexpr uint64_t kMemoryPart = 4;

constexpr const char* kHowJudged =
    "judged as by --weights constructed, on the weights that its constructor makes under the "
    "reference's seed";

// A candidate that chose other weights would otherwise choose its rule, too.
void TakeBackGain(Verdict* verdict) {
  Speed& speed = *verdict->speed;
  if (verdict->outcome == Outcome::kFaster) {
    verdict->outcome = Outcome::kUnsettled;
    verdict->message +=
        ", but on weights as constructed, which it may prepare once: that counts only where "
        "--weights constructed is asked for";
  }
  speed.passed = false;
  for (auto& [name, baseline] : speed.baselines) {
    baseline.certified_speedup = 0;
    if (baseline.decision != OutcomeName(Outcome::kFaster)) continue;
    baseline.decision = OutcomeName(Outcome::kUnsettled);
    AddNote("weights as constructed may be prepared once: --weights constructed counts the gain",
            &baseline.note);
  }
}

std::string RightOnUniform(const std::vector<std::string>& uniform) {
  if (uniform.empty()) return "right on weights as constructed alone";
  WeightsMatch names;
  names.missing = uniform;
  names.missing_count = uniform.size();
  return fmt::format("right on weights as constructed, where {} {} the same value everywhere",
                     MissingInWords(names), uniform.size() == 1 ? "has" : "have");
}

void AddCosts(const Cost& more, Cost* cost) {
  cost->start_s += more.start_s;
  cost->fill_s += more.fill_s;
  cost->timed_s += more.timed_s;
}

void Say(const std::string& cause, Verdict* first) {
  first->correctness->hint = cause;
  first->message = first->outcome == Outcome::kWrong ? "wrong: " + cause : cause;
}

}  // namespace

void SayRightWithConstant(bool has_other_sizes, Verdict* verdict) {
  Correctness& correctness = *verdict->correctness;
  correctness.right_with_weights = WeightsKind::kConstant;
  correctness.hint =
      "right with constant weights: it prepares them once; `--weights constant` allows it";
  if (has_other_sizes) correctness.hint += ", and then checks it at other sizes, too";
  verdict->outcome = Outcome::kWrong;
  verdict->message = "wrong where each call has weights of its own; " + correctness.hint;
}

std::vector<std::string> UniformParameters(const wire::Plan& plan,
                                           const std::vector<std::byte>& constructed) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const wire::ArgumentSpec& argument = plan.arguments[i];
    if (argument.role != wire::Role::kParameter || argument.size_bytes == 0 ||
        !IsFloatingPoint(argument.dtype))
      continue;
    // Equal elements are those that equal their neighbours.
    const std::byte* values = constructed.data() + argument.offset;
    const uint64_t element = wire::ElementBytes(argument.dtype);
    if (std::memcmp(values, values + element, argument.size_bytes - element) == 0)
      names.emplace_back(argument.name);
  }
  return names;
}

Verdict ConcludeConstructed(Verdict first, Verdict constructed, const ConstructedFinding& finding) {
  const WeightsMatch& match = finding.match;
  const bool differs = first.outcome == Outcome::kWeightsDiffer;
  const bool right = IsCorrect(constructed.outcome);
  const bool stands = right && finding.uniform.empty() && differs;
  if (stands || constructed.outcome == Outcome::kFoul) {
    AddCosts(first.cost, &constructed.cost);
    if (constructed.correctness) {
      constructed.correctness->right_with_weights =
          right ? std::optional(WeightsKind::kConstructed) : std::nullopt;
      AddNote(kHowJudged, &constructed.correctness->note);
    }
    if (constructed.speed && !finding.may_prepare) TakeBackGain(&constructed);
    return constructed;
  }
  AddCosts(constructed.cost, &first.cost);
  if (right) {
    first.correctness->right_with_weights = WeightsKind::kConstructed;
    const std::string seen = RightOnUniform(finding.uniform);
    Say(differs
            ? fmt::format("{}; {}, so that it may ignore them: give them the reference's names, "
                          "or judge with --weights constructed",
                          DifferingWeights(match), seen)
            : fmt::format("{}: it prepares them once, or leaves them out; --weights constructed "
                          "allows it",
                          seen),
        &first);
  } else if (differs) {
    const std::string why = constructed.correctness && !constructed.correctness->hint.empty()
                                ? constructed.correctness->hint
                                : constructed.message;
    Say(fmt::format("{}; on those that its constructor makes it is not right either: {}",
                    DifferingWeights(match), FirstLine(why)),
        &first);
  }
  return first;
}

ConstructedWeights::ConstructedWeights(const Workbench& bench) : bench_(bench) {}
ConstructedWeights::~ConstructedWeights() = default;

Result<Verdict> ConstructedWeights::JudgeInSession(const CandidateSource& source,
                                                   SessionAsked asked, const JudgeEvents& events,
                                                   ConstructedFinding* finding, bool is_whole) {
  if (!session_) {
    SessionTerms terms = bench_.terms;
    terms.problem.weights = WeightsKind::kConstructed;
    terms.tools = {};  // they run on the verdict that is given
    MemoryTerms memory;
    memory.within_bytes = std::max<uint64_t>(1, bench_.oracle_options.memory_bytes / kMemoryPart);
    ASSAY_ASSIGN_OR_RETURN(session_,
                           Session::Open(std::move(terms), bench_.stop, events, nullptr, memory));
  }
  const Oracle& oracle = *session_->bench().oracle;
  finding->uniform = UniformParameters(oracle.plan(), oracle.varied_weights()->constructed());
  asked.correctness_only |= !is_whole || !finding->uniform.empty();
  return session_->Judge(source, asked, events);
}

Result<Verdict> ConstructedWeights::Judge(const CandidateSource& source, const WeightsMatch& match,
                                          const SessionAsked& asked, const JudgeEvents& events,
                                          Verdict first) {
  const Span span("judge on weights as constructed");
  ConstructedFinding finding;
  finding.match = match;
  finding.may_prepare = WeightsTreatment(bench_.terms.problem) != WeightsKind::kVaried;
  const bool is_whole = first.outcome == Outcome::kWeightsDiffer;
  auto judged = JudgeInSession(source, asked, events, &finding, is_whole);
  if (judged) return ConcludeConstructed(std::move(first), std::move(*judged), finding);
  session_.reset();
  const bool fits_alone = judged.error().code == ErrorCode::kTooLarge && bench_.terms.sharers > 1;
  if (fits_alone || judged.error().kind == ErrorKind::kInterrupted)
    return std::unexpected(judged.error());
  Say(fmt::format("{}; whether it is right on weights as constructed could not be found out: {}",
                  first.correctness->hint, FirstLine(judged.error().message)),
      &first);
  return first;
}

}  // namespace assay
