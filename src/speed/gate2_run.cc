#include "speed/gate2_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/defences.h"
#include "base/median.h"
#include "base/trace.h"
#include "rules/replays.h"
#include "rules/speed_notes.h"
#include "speed/pair_runner.h"

namespace assay {
namespace {

constexpr double kDeviceNoiseBlockNs = 0.5e6;
constexpr int64_t kClearSpentNs = 1'200'000'000;
// Calls alone are few, and short ones noisy: a win must show there by this much.
constexpr double kAloneMargin = 0.05;
// Where more of the measurements are disturbed the machine is too busy for a decision.
constexpr double kDisturbedShareMax = 0.1;

void AddNote(const std::string& note, BaselineResult* speed) {
  if (!speed->note.empty()) speed->note += "; ";
  speed->note += note;
}

constexpr const char* kOpponentCopies =
    "its opponent uses the memory of its results again, so that copying them is in the opponent's "
    "time";

// The decision with what keeps it from standing; notes that and what is to be said besides.
Decision WithDoubts(Decision decision, const Gate2Setup& setup, const PairRunner& runner,
                    const std::optional<GainInARow>& in_a_row, Gate2Result* result) {
  BaselineResult& speed = result->result;
  const auto unsettled = [&speed](std::string why) {
    speed.certified_speedup = 0;
    speed.note = std::move(why);
    return Decision::kUnsettled;
  };
  if (runner.disturbed_share() > kDisturbedShareMax)
    return unsettled(fmt::format(
        "other processes disturbed {:.0f}% of the measurements: judge again on a quieter machine",
        100 * runner.disturbed_share()));
  if (result->kept_work) return unsettled(*result->kept_work);
  if (const std::string own = NoteOfOwnCopies(speed.time_ns, speed.candidate_time_ns,
                                              runner.candidates_copy_ns(), setup.threshold);
      decision == Decision::kSlower && speed.copies == "candidate" && !own.empty())
    return unsettled(own);
  if (decision == Decision::kFaster && speed.copies == "opponent" &&
      !IsFasterWithoutCopy(speed.time_ns, runner.opponents_copy_ns(), speed.candidate_time_ns,
                           setup.threshold))
    return unsettled(std::string(kOpponentCopies) + "; without that copy it would not be faster");
  if (const std::string blocks = NoteOfShortBlocks(runner.calls(), runner.calls() * speed.time_ns);
      decision == Decision::kFaster && setup.foreign_code && setup.live.on_device() &&
      !blocks.empty())
    return unsettled(blocks);
  if (decision == Decision::kFaster &&
      !BlocksBearOut(speed.speedup, speed.time_ns, speed.candidate_time_ns, setup.threshold))
    return unsettled(fmt::format(
        "{:.3g}x by its pairs, but {:.3g}x by the medians of all blocks: the gain comes from a "
        "part of its blocks",
        speed.speedup, speed.time_ns / speed.candidate_time_ns));
  if (in_a_row && in_a_row->alone <= setup.threshold * (1 + kAloneMargin))
    return unsettled(in_a_row->seen);
  if (setup.libraries_forbidden && decision == Decision::kFaster && !result->libraries)
    return unsettled("this problem forbids libraries, and where its time goes could not be seen" +
                     (result->libraries_unseen.empty() ? "" : ": " + result->libraries_unseen));
  if (in_a_row) {
    speed.certified_speedup = std::min(speed.certified_speedup, in_a_row->alone);
    speed.note =
        fmt::format("{}; calls alone are {:.3g}x as fast", in_a_row->seen, in_a_row->alone);
  } else if (const int repeated = runner.repeated(); repeated > 0) {
    AddNote(fmt::format("{} because other processes had disturbed {}",
                        repeated == 1 ? std::string("1 measurement was repeated")
                                      : fmt::format("{} measurements were repeated", repeated),
                        repeated == 1 ? "it" : "them"),
            &speed);
  }
  return decision;
}

// By how long calls and blocks are as far as is known.
SpeedRule RuleNow(const Gate2Setup& setup, const PairRunner& runner) {
  // What the machine measured of itself are its processors' hosts. The device's own noise was
  // measured over blocks of this length.
  const bool of_device =
      setup.device_forms && runner.calls() * runner.call_ns() >= kDeviceNoiseBlockNs;
  const NoiseOf noise = runner.launched() ? NoiseOf::kReplays
                        : of_device       ? NoiseOf::kDevice
                                          : NoiseOf::kHosts;
  const bool as_measured = noise == NoiseOf::kHosts;
  return RuleForDuration(runner.call_ns(), setup.threshold,
                         as_measured ? setup.noise : std::span<const NoisePoint>(), noise);
}

// BaselineResult::copies. A native candidate writes into slots as it computes.
std::string CopiesOf(const Gate2Setup& setup, const PairRunner& runner) {
  if (!setup.candidate_in_python) return runner.both_copy() ? "opponent" : "nobody";
  if (runner.both_copy() || !setup.candidate_leaves) return "both";
  return runner.candidate_copies() ? "candidate" : "nobody";
}

void AddNoteOfCopies(const Gate2Setup& setup, const PairRunner& runner, Decision decision,
                     BaselineResult* speed) {
  if (speed->copies == "candidate")
    AddNote(setup.live.on_device()
                ? "it uses the memory of its results again, or other memory than "
                  "PyTorch's, so that copying them is in its time"
                : "it uses the memory of its results again, so that copying them "
                  "is in its time",
            speed);
  if (speed->copies == "opponent" && decision != Decision::kUnsettled)
    AddNote(kOpponentCopies, speed);
  if (!setup.trusts_copies || speed->copies != "both" || decision != Decision::kFaster) return;
  const std::string note = NoteOfCopies(speed->time_ns, runner.opponents_copy_ns(),
                                        speed->candidate_time_ns, setup.threshold);
  if (!note.empty()) AddNote(note, speed);
}

void AddNoteOfReplays(const Gate2Setup& setup, BaselineResult* speed) {
  if (!speed->launched) return;
  AddNote(NoteOfReplays(*speed->launched, setup.device_forms ? "opponent" : "reference"), speed);
}

}  // namespace

void Gate2Setup::SetForms(CandidateForm form, std::optional<CandidateForm> against,
                          const std::string& baseline, bool replay) {
  const bool is_python = form == CandidateForm::kPython;
  candidate_in_python = is_python;
  subtract_settle = !against && !is_python;
  trusts_copies = !against && is_python;
  if (Stands(Defence::kLeftResults)) {
    candidate_leaves = is_python;
    opponent_leaves = against ? *against == CandidateForm::kPython : is_python;
  }
  // A graph that was captured as the module was compiled has its results at one place, which the
  // judge cannot read.
  const bool captured =
      baseline == "compiled-reduce-overhead" || baseline == "compiled-max-autotune";
  if (live.on_device() && !against && captured) candidate_leaves = opponent_leaves = false;
  foreign_code = form != CandidateForm::kDevice;
  trusts_opponent = !against;
  device_forms = !foreign_code && against == CandidateForm::kDevice;
  may_replay = replay && live.on_device() && !foreign_code && (!against || device_forms);
}

HostResult<Gate2Result> RunGate2(const Gate2Setup& setup) {
  const Span span("gate 2");
  Gate2Result result;
  Deadline budget = Deadline::AfterSeconds(setup.budget_s);
  PairRunner runner(setup, &budget, &result);
  if (auto calibrated = runner.Calibrate(); !calibrated)
    return OpponentsTrouble(calibrated.error());
  SpeedRule rule = RuleNow(setup, runner);
  std::vector<double> log_ratios;
  Decision decision = Decision::kContinue;
  std::optional<GainInARow> in_a_row;
  while (decision == Decision::kContinue) {
    const int index = static_cast<int>(log_ratios.size());
    auto ratio = runner.Run(index);
    if (!ratio) return std::unexpected(ratio.error());
    if (!*ratio && runner.starts_over()) log_ratios.clear();
    if (!*ratio && (runner.grew() || runner.starts_over())) continue;
    if (!*ratio) return result;
    log_ratios.push_back(**ratio);
    rule = RuleNow(setup, runner);
    const bool enough_spent = static_cast<int>(log_ratios.size()) >= setup.clear_pairs ||
                              result.spent.fill_ns + result.spent.timed_ns > kClearSpentNs;
    const int pairs = static_cast<int>(log_ratios.size());
    const double left_s = static_cast<double>(budget.RemainingNs()) / 1e9;
    const bool last = pairs >= rule.pairs_max ||
                      IsOutOfBudget(pairs, setup.budget_s, left_s, setup.started_before_s);
    const std::vector<double> uncharged = UnchargedLogRatios(result.samples);
    decision = DecideCharged(log_ratios, uncharged, rule, enough_spent, last);
    if (decision == Decision::kUnsettled &&
        Decide(log_ratios, rule, enough_spent, last) == Decision::kSlower)
      AddNote(NoteOfCharges(Estimate(uncharged, rule).speedup), &result.result);
    if (decision != Decision::kContinue && decision != Decision::kSlower)
      result.worked_ahead = WorkedAhead(runner.steps(), setup.step_wake_ns);
    if (decision == Decision::kFaster)
      result.kept_work = KeptWork(runner.steps(), setup.kept_wake_ns, setup.beside_baseline);
    if (decision == Decision::kFaster && setup.beside_baseline)
      in_a_row = FasterInARow(runner.steps());
    setup.progress(static_cast<int>(log_ratios.size()), Estimate(log_ratios, rule));
  }
  // What comes later is in no pair.
  result.result.copies = CopiesOf(setup, runner);
  if (setup.sustained_s > 0) {
    auto right = runner.Sustain(setup.sustained_s);
    // What was decided before stands.
    const bool interrupted = !right && right.error().kind == HostTrouble::Kind::kInterrupted;
    if (!right && !interrupted) return std::unexpected(right.error());
    if (right && !*right) return result;
  }
  const SpeedEstimate estimate = Estimate(log_ratios, rule);
  BaselineResult& speed = result.result;
  speed.time_ns = Median(runner.reference_ns());
  speed.candidate_time_ns = Median(runner.candidate_ns());
  speed.speedup = estimate.speedup;
  speed.ci_low = estimate.low;
  speed.ci_high = estimate.high;
  speed.confidence = estimate.confidence;
  speed.smallest_visible = estimate.smallest_visible;
  speed.certified_speedup = CertifiedSpeedup(log_ratios, rule);
  speed.delta = rule.delta;
  speed.clear_margin = rule.clear_margin;
  speed.disturbed_share = runner.disturbed_share();
  speed.launched = runner.launched();
  decision = WithDoubts(decision, setup, runner, in_a_row, &result);
  AddNoteOfCopies(setup, runner, decision, &speed);
  AddNoteOfReplays(setup, &speed);
  speed.decision = DecisionName(decision);
  speed.pairs = static_cast<int>(log_ratios.size());
  speed.rounds = runner.rounds();
  speed.calls_per_block = static_cast<int>(runner.calls());
  return result;
}

}  // namespace assay
