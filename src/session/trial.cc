#include "session/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/trace.h"
#include "builders/build_steps.h"
#include "hosts/blame.h"
#include "machine/meter.h"
#include "rules/speed_notes.h"
#include "rules/unseen_operators.h"
#include "session/constructed_weights.h"
#include "session/record.h"
#include "toolchain/packed_folder.h"

namespace assay {

bool Trial::AsksForSpeed() const {
  return !setup_.correctness_only && setup_.batch.draws.degenerate().empty();
}

Result<Verdict> Trial::Run(HostsOfCandidate& hosts) {
  const Workbench& bench = setup_.bench;
  Verdict verdict =
      NewVerdict(bench.terms, setup_.candidate, FactsOf(bench.terms.problem, *bench.oracle),
                 bench.python, bench.seed, bench.threads, bench.gpu());
  setup_.schedule.set_expects_speed(false);
  ASSAY_ASSIGN_OR_RETURN(const bool final, PassGates(hosts, &verdict));
  if (!final) {
    Settle(&verdict);
    settled_ = true;
    if (setup_.against == nullptr)
      verdict.roofline = RooflineOf(verdict, bench.terms.machine, bench.oracle->account(),
                                    bench.terms.problem.operands, bench.gpu());
    NoteBaseline(&verdict);
  }
  const uint64_t limit = bench.terms.limits.memory_bytes;
  if (verdict.cause == Cause::kMemoryLimit)
    verdict.message += fmt::format(
        "; the limit is --memory {}, the judge's slots not counted: --memory {} "
        "allows it twice as much",
        MemoryText(limit), MemoryText(2 * limit));
  if (verdict.correctness) {
    std::string& note = verdict.correctness->note;
    for (const std::string& more : {NoteOfLeftOut(verdict.correctness->draws),
                                    NoteOfDrawsForTime(verdict.correctness->draws)})
      if (!more.empty()) note += (note.empty() ? "" : "; ") + more;
  }
  return verdict;
}

Result<bool> Trial::PassGates(HostsOfCandidate& hosts, Verdict* verdict) {
  HostSchedule& schedule = setup_.schedule;
  ASSAY_ASSIGN_OR_RETURN(bool final, PassCorrectness(hosts.correctness, verdict));
  if (final) return true;
  if (!hosts.other_sizes.empty() && !schedule.alone()) hosts.other_sizes.front().Prefetch(0, 1);
  if (AsksForSpeed() && !schedule.alone()) {
    hosts.pairs.Prefetch(0, kPairsMin);
    if (setup_.bench.saves_cores()) ASSAY_RETURN_IF_ERROR(schedule.BeginOpponents(Queues()));
  }
  ASSAY_ASSIGN_OR_RETURN(final, PassOtherSizes(hosts, verdict));
  if (final) return true;
  schedule.set_expects_speed(true);
  if (EndsCorrect(verdict) || EndsForTime(verdict)) return true;
  verdict->speed.emplace();
  verdict->speed->threshold = setup_.bar.threshold;
  if (const BuiltCandidate* against = setup_.against)
    verdict->speed->against = {against->source.path, against->source.hash};
  const int64_t waiting_ns = MonotonicNs();
  setup_.before_timing();
  verdict->cost.start_s += Seconds(MonotonicNs() - waiting_ns);
  return PassBaselines(hosts.pairs, verdict);
}

bool Trial::EndsCorrect(Verdict* verdict) const {
  if (AsksForSpeed()) return false;
  const std::string& why = setup_.batch.draws.degenerate();
  verdict->outcome = why.empty() ? Outcome::kCorrect : Outcome::kUnsettled;
  verdict->cause = why.empty() ? Cause::kNone : Cause::kBlindProblem;
  verdict->message = why.empty()
                         ? "correct; its speed was not asked for"
                         : fmt::format(
                               "correct, and that means nothing: {}, so this problem cannot tell "
                               "a kernel from one that computes nothing (assay audit says more)",
                               why);
  return true;
}

bool Trial::EndsForTime(Verdict* verdict) const {
  const Workbench& bench = setup_.bench;
  // Calls of the candidate in a pair, at least; and the pair's values and the reference's calls, in
  // draws of gate 1: 34 of them where calls are a plain wait.
  constexpr double kCalls = 9, kDraws = 25;
  const double pair_s = kCalls * call_ns_ / 1e9 + kDraws * setup_.batch.draws.draw_s();
  const double budget_s = bench.terms.effort.speed_budget_s;
  if (bench.on_device() || pair_s <= budget_s) return false;
  const double enough_s = 10 * std::ceil((kPairsMin + 1) * pair_s / 10);
  const std::string set = setup_.bench.oracle->SetForShare(budget_s / enough_s);
  verdict->outcome = Outcome::kUnsettled;
  verdict->cause = Cause::kLongCalls;
  verdict->message = fmt::format(
      "correct; its speed was not measured, as one of at least {} pairs takes about {:.0f} s here, "
      "and all of them may take --budget {:g} s: use --budget {:.0f}{}",
      kPairsMin, pair_s, budget_s, enough_s, set.empty() ? " or a smaller size" : " or " + set);
  return true;
}

SizeRunTerms Trial::OtherSizeTerms() const {
  const Workbench& bench = setup_.bench;
  return {bench.tolerance, bench.terms.limits.call_timeout_s, bench.stop,
          bench.on_device() ? &setup_.schedule.ending() : nullptr,
          [this](const std::string& text, double fraction) {
            setup_.progress(JudgeStage::kCorrectness, text, fraction);
          }};
}

Result<void> Trial::SayWhatFailed(const Gate1Result& result, Verdict* verdict) {
  // Python alone imports what may not be here.
  if (result.not_here && setup_.candidate.source.form == CandidateForm::kPython)
    return Fail(ErrorKind::kUnjudged, verdict->correctness->hint);
  wants_room_ = result.lacked_memory || result.could_not_ask;
  verdict->outcome = result.lacked_memory ? Outcome::kOutOfMemory : Outcome::kWrong;
  verdict->message = (result.lacked_memory ? "" : "wrong: ") + verdict->correctness->hint;
  return {};
}

Result<bool> Trial::PassCorrectness(CandidateHosts& hosts, Verdict* verdict) {
  Workbench& bench = setup_.bench;
  const AtSize size{
      *bench.oracle, bench.oracle_options, *bench.live, setup_.batch.draws, bench.rule, hosts, ""};
  ASSAY_ASSIGN_OR_RETURN(auto result, RunAtSize(size, OtherSizeTerms(), verdict));
  if (!result) return true;
  verdict->correctness = std::move(result->correctness);
  verdict->coverage = bench.coverage;
  const CandidateSource& source = setup_.candidate.source;
  std::string& note = verdict->correctness->note;
  for (const std::string& more :
       {bench.oracle->description().layouts, NoteOfSameValues(bench.oracle->description()),
        NoteOfFloat64(bench.oracle->description()),
        NoteOfState(bench.oracle->description(), bench.terms.problem, source.form),
        setup_.batch.draws.kept_signs(), setup_.batch.draws.constant_outputs()})
    if (!more.empty()) note += (note.empty() ? "" : "; ") + more;
  if (source.form == CandidateForm::kPython) {
    const std::string constants =
        ConstantsNote(std::string(EntryText(source.content)), bench.terms.problem.set);
    if (!constants.empty()) note += (note.empty() ? "" : "; ") + constants;
  }
  call_ns_ = result->call_ns;
  if (verdict->correctness->passed) return false;
  ASSAY_RETURN_IF_ERROR(SayWhatFailed(*result, verdict));
  if (result->wrong_values) ASSAY_RETURN_IF_ERROR(LookAtWeights(size, *result, verdict));
  return true;
}

Result<void> Trial::LookAtWeights(const AtSize& size, const Gate1Result& result, Verdict* verdict) {
  const Oracle& oracle = *setup_.bench.oracle;
  const bool is_constructed =
      WeightsTreatment(setup_.bench.terms.problem) == WeightsKind::kConstructed;
  const WeightsMatch& match = result.weights;
  // Where it lacks some, the others say nothing.
  if (!match.lacks_floats && oracle.varied_weights()->any_vary()) {
    ASSAY_ASSIGN_OR_RETURN(const bool right, IsRightWithConstant(size, verdict));
    if (right) {
      SayRightWithConstant(!setup_.batch.other_sizes.empty(), verdict);
      return {};
    }
  }
  if (match.differs()) {
    verdict->outcome = Outcome::kWeightsDiffer;
    verdict->message = DifferingWeights(match) + ": " + verdict->correctness->hint;
  }
  const bool is_python = setup_.candidate.source.form == CandidateForm::kPython;
  if (is_python && !is_constructed && (match.differs() || oracle.randomised_weights()))
    asks_for_constructed_ = match;
  return {};
}

Result<bool> Trial::IsRightWithConstant(AtSize size, Verdict* verdict) {
  setup_.schedule.ending().Await();
  size.constant_weights = true;
  Verdict aside = *verdict;
  const auto again = RunAtSize(size, OtherSizeTerms(), &aside);
  verdict->cost = aside.cost;
  if (!again && again.error().kind == ErrorKind::kInterrupted)
    return std::unexpected(again.error());
  if (auto restored = setup_.batch.draws.Restore(size.oracle); !restored)
    return std::unexpected(TroubleAsError(restored.error(), "the reference failed"));
  return again && *again && (*again)->correctness.passed;
}

Result<bool> Trial::PassOtherSizes(HostsOfCandidate& hosts, Verdict* verdict) {
  // Importing PyTorch takes a second for each, so a host in Python has one, unless they were asked
  // for.
  const bool all =
      setup_.candidate.source.form != CandidateForm::kPython || setup_.bench.terms.ragged_asked;
  const size_t count =
      all ? hosts.other_sizes.size() : std::min<size_t>(1, hosts.other_sizes.size());
  for (size_t i = 0; i < count; ++i) {
    const OtherSize& other = *setup_.batch.other_sizes[i];
    if (setup_.candidate.source.form != CandidateForm::kPython &&
        HasOtherArguments(setup_.bench.oracle->plan(), other.oracle.plan())) {
      std::string& note = verdict->correctness->note;
      note += fmt::format(
          "{}{} asks for other arguments, which no native candidate takes: it is "
          "not checked there",
          note.empty() ? "" : "; ", other.text);
      continue;
    }
    ASSAY_ASSIGN_OR_RETURN(const bool final, PassOtherSize(hosts.other_sizes[i],
                                                           *setup_.batch.other_sizes[i], verdict));
    if (final) return true;
  }
  return false;
}

Result<bool> Trial::PassOtherSize(CandidateHosts& hosts, OtherSize& other, Verdict* verdict) {
  // The correctness gate's host gives its memory back first.
  if (setup_.schedule.alone()) setup_.schedule.ending().Await();
  const std::string where = " at " + other.text;
  const AtSize size{other.oracle, other.options, other.live, other.draws, other.rule, hosts, where};
  ASSAY_ASSIGN_OR_RETURN(auto result, RunAtSize(size, OtherSizeTerms(), verdict));
  if (!result) return true;
  Correctness& correctness = *verdict->correctness;
  AddDraws(std::move(result->correctness), other.options.problem.set, &correctness);
  if (correctness.passed) return false;
  correctness.mistake = Mistake::kOtherSize;
  correctness.hint =
      fmt::format("right at the size that was asked for, but{}: {}", where, correctness.hint);
  ASSAY_RETURN_IF_ERROR(SayWhatFailed(*result, verdict));
  return true;
}

// On a GPU the roofline says what launches take.
void Trial::NoteBaseline(Verdict* verdict) const {
  const bool known = verdict->roofline && verdict->roofline->regime != "overhead";
  if (setup_.against != nullptr || !verdict->work || (setup_.bench.on_device() && !known)) return;
  BaselineResult& headline = verdict->speed->baselines.at(verdict->speed->headline);
  if (headline.speedup <= 1) return;
  const std::string note =
      NoteOfBaseline(*verdict->work, known ? verdict->roofline->bound_ns : 0, headline.time_ns);
  if (!note.empty()) headline.note += (headline.note.empty() ? "" : "; ") + note;
}

// The headline baseline decides the outcome.
void Trial::Settle(Verdict* verdict) const {
  Speed& speed = *verdict->speed;
  BaselineResult& headline = speed.baselines.at(speed.headline);
  // An opponent of one's own may be slower than the reference.
  if (headline.decision == "faster" && verdict->coverage && setup_.against == nullptr)
    if (std::string why = UnseenExplains(*verdict->coverage, headline.ci_low); !why.empty()) {
      headline.decision = "unsettled";
      headline.why_unsettled = WhyUnsettled{UnsettledCause::kUnseen, 0, false};
      verdict->message = "correct, but it is open whether it computes all of the problem: " + why;
    }
  const auto outcome = OutcomeFromName(headline.decision);
  ASSAY_CHECK(outcome.has_value());
  verdict->outcome = *outcome;
  speed.passed = *outcome == Outcome::kFaster;
  if (*outcome == Outcome::kNotFaster)
    speed.threshold = std::max(setup_.bar.threshold, setup_.bar.bound);
  const std::string opponent = setup_.against != nullptr         ? setup_.against->source.path
                               : speed.headline == kBestBaseline ? "the best baseline"
                                                                 : speed.headline;
  if (verdict->message.empty()) verdict->message = OutcomeMessage(*outcome, speed, opponent);
}

}  // namespace assay
