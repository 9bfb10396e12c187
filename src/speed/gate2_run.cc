#include "speed/gate2_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/defences.h"
#include "base/median.h"
#include "base/trace.h"
#include "machine/meter.h"
#include "rules/replays.h"
#include "rules/speed_notes.h"
#include "speed/pair.h"
#include "speed/pool_inputs.h"
#include "speed/sustained.h"

namespace assay {
namespace {

constexpr double kDeviceNoiseBlockNs = 0.5e6;
constexpr int64_t kClearSpentNs = 1'200'000'000;
// Calls alone are few, and short ones noisy: a win must show there by this much.
constexpr double kAloneMargin = 0.05;
// If more of the measurements are disturbed, the machine is too busy for a decision.
constexpr double kDisturbedShareMax = 0.1;
// An idle machine's own work disturbs a few measurements of each verdict; more are worth a note.
constexpr double kRepeatedShareNoted = 0.2;

constexpr const char* kOpponentCopies =
    "its opponent uses the memory of its results again, so that copying them is in the opponent's "
    "time";

void AddNote(const std::string& note, BaselineResult* speed) {
  if (speed->note.contains(note)) return;
  if (!speed->note.empty()) speed->note += "; ";
  speed->note += note;
}

// Why a decision does not stand.
struct Doubt {
  UnsettledCause cause;
  std::string note;
};

// nullopt if the decision stands.
std::optional<Doubt> DoubtOf(Decision decision, const Gate2Setup& setup, const GateParts& parts,
                             const std::optional<GainInARow>& in_a_row, const Gate2Result& result) {
  const BaselineResult& speed = result.result;
  const Ledger& ledger = parts.ledger;
  const double threshold = setup.terms.threshold;
  if (const double share = ledger.DisturbedShare(); share > kDisturbedShareMax)
    return Doubt{UnsettledCause::kDisturbed,
                 fmt::format("other processes disturbed {:.0f}% of the measurements: judge again "
                             "on a quieter machine",
                             100 * share)};
  if (const std::string own = NoteOfOwnCopies(speed.time_ns, speed.candidate_time_ns,
                                              Median(ledger.candidates_copy_ns), threshold);
      decision == Decision::kSlower && speed.copies == "candidate" && !own.empty())
    return Doubt{UnsettledCause::kCopies, own};
  if (decision == Decision::kFaster && speed.copies == "both" && parts.copies.candidate_copies())
    if (const std::string reused = NoteOfReusedMemory(
            speed.time_ns, Median(ledger.opponents_copy_ns), speed.candidate_time_ns, threshold);
        !reused.empty())
      return Doubt{UnsettledCause::kCopies, reused};
  if (decision == Decision::kFaster && speed.copies == "opponent" &&
      !IsFasterWithoutCopy(speed.time_ns, Median(ledger.opponents_copy_ns), speed.candidate_time_ns,
                           threshold))
    return Doubt{UnsettledCause::kCopies,
                 std::string(kOpponentCopies) + "; without that copy it would not be faster"};
  const uint32_t calls = parts.length.calls;
  if (const std::string blocks = NoteOfShortBlocks(calls, calls * speed.time_ns);
      decision == Decision::kFaster && setup.forms.foreign_code && setup.values.live.on_device() &&
      !blocks.empty())
    return Doubt{UnsettledCause::kMemory, blocks};
  if (decision == Decision::kFaster &&
      !BlocksBearOut(speed.speedup, speed.time_ns, speed.candidate_time_ns, threshold))
    return Doubt{UnsettledCause::kBlocks,
                 fmt::format("{:.3g}x by its pairs, but {:.3g}x by the medians of all blocks: the "
                             "gain comes from a part of its blocks",
                             speed.speedup, speed.time_ns / speed.candidate_time_ns)};
  if (in_a_row && in_a_row->alone <= threshold * (1 + kAloneMargin))
    return Doubt{UnsettledCause::kAlone, in_a_row->seen};
  if (setup.terms.libraries_forbidden && decision == Decision::kFaster && !result.libraries)
    return Doubt{UnsettledCause::kLibraries,
                 "this problem forbids libraries, and where its time goes could not be seen" +
                     (result.libraries_unseen.empty() ? "" : ": " + result.libraries_unseen)};
  return std::nullopt;
}

// The decision, or that it is unsettled; notes that and what is to be said besides.
Decision WithDoubts(Decision decision, const Gate2Setup& setup, const GateParts& parts,
                    const std::optional<GainInARow>& in_a_row, Gate2Result* result) {
  BaselineResult& speed = result->result;
  if (auto doubt = DoubtOf(decision, setup, parts, in_a_row, *result)) {
    speed.certified_speedup = 0;
    // So few pairs decide nothing on a quiet machine either.
    if (speed.why_unsettled && speed.why_unsettled->cause == UnsettledCause::kBudget) {
      AddNote(doubt->note, &speed);
      speed.why_unsettled->disturbed = doubt->cause == UnsettledCause::kDisturbed;
    } else {
      speed.note = std::move(doubt->note);
      speed.why_unsettled = WhyUnsettled{doubt->cause, 0};
    }
    return Decision::kUnsettled;
  }
  if (in_a_row) {
    speed.certified_speedup = std::min(speed.certified_speedup, in_a_row->alone);
    speed.note =
        fmt::format("{}; calls alone are {:.3g}x as fast", in_a_row->seen, in_a_row->alone);
  } else if (const double share = parts.ledger.RepeatedShare(); share > kRepeatedShareNoted) {
    AddNote(fmt::format("{:.0f}% of the measurements were repeated because other processes had "
                        "disturbed them",
                        100 * share),
            &speed);
    if (speed.why_unsettled) speed.why_unsettled->disturbed = true;
  }
  if (decision == Decision::kFaster && speed.copies == "both" && parts.copies.candidate_copies())
    speed.certified_speedup =
        std::min(speed.certified_speedup,
                 SpeedupBesideCopies(speed.time_ns, Median(parts.ledger.opponents_copy_ns),
                                     speed.candidate_time_ns));
  return decision;
}

// By how long calls and blocks are as far as is known.
SpeedRule RuleNow(const Gate2Setup& setup, const GateParts& parts) {
  // The machine's own noise was measured with hosts on its processors. The device's own noise was
  // measured over blocks of this length.
  const bool of_device =
      setup.forms.device_forms && parts.length.calls * parts.call_ns >= kDeviceNoiseBlockNs;
  const NoiseOf noise = parts.replays.settled() ? NoiseOf::kReplays
                        : of_device             ? NoiseOf::kDevice
                                                : NoiseOf::kHosts;
  const bool as_measured = noise == NoiseOf::kHosts;
  SpeedRule rule =
      RuleForDuration(parts.call_ns, setup.terms.threshold,
                      as_measured ? setup.terms.noise : std::span<const NoisePoint>(), noise);
  rule.futility = setup.terms.futility;
  rule.bound = setup.terms.bound;
  return rule;
}

// BaselineResult::copies. A native candidate writes into slots as it computes.
std::string CopiesOf(const Forms& forms, const CopyPolicy& copies) {
  if (!forms.candidate_in_python) return copies.both_copy() ? "opponent" : "nobody";
  if (copies.both_copy() || !forms.candidate_leaves) return "both";
  if (!copies.candidate_copies()) return "nobody";
  return forms.opponent_leaves ? "both" : "candidate";
}

void AddNoteOfCopies(const Gate2Setup& setup, const GateParts& parts, Decision decision,
                     BaselineResult* speed) {
  const Ledger& ledger = parts.ledger;
  if (speed->copies == "candidate")
    AddNote(setup.values.live.on_device()
                ? "it uses the memory of its results again, or other memory than "
                  "PyTorch's, so that copying them is in its time"
                : "it uses the memory of its results again, so that copying them "
                  "is in its time",
            speed);
  if (speed->copies == "both" && parts.copies.candidate_copies()) {
    // Any doubt about the copies says so already.
    if (!speed->why_unsettled || speed->why_unsettled->cause != UnsettledCause::kCopies)
      AddNote(
          "it uses the memory of its results again, so that copying results is in both sides' "
          "times",
          speed);
    return;
  }
  if (speed->copies == "opponent" && decision != Decision::kUnsettled)
    AddNote(kOpponentCopies, speed);
  if (!setup.forms.trusts_copies || speed->copies != "both" || decision != Decision::kFaster)
    return;
  const std::string note = NoteOfCopies(speed->time_ns, Median(ledger.opponents_copy_ns),
                                        speed->candidate_time_ns, setup.terms.threshold);
  if (!note.empty()) AddNote(note, speed);
}

void AddNoteOfReplays(const Forms& forms, const ReplayPolicy& replays, BaselineResult* speed) {
  const char* const opponent = forms.device_forms ? "opponent" : "reference";
  if (speed->launched)
    AddNote(NoteOfReplays(*speed->launched, opponent), speed);
  else if (replays.given_up())
    AddNote(NoteOfLaunches(opponent), speed);
}

// The state of the sequential test.
struct PairTest {
  std::vector<double> log_ratios;  // one a pair
  SpeedRule rule;
  Decision decision = Decision::kContinue;
  std::optional<GainInARow> in_a_row;
};

// Takes a look after a pair.
void TakeLook(const Gate2Setup& setup, const GateParts& parts, PairTest* test,
              Gate2Result* result) {
  const Terms& terms = setup.terms;
  const Ledger& ledger = parts.ledger;
  test->rule = RuleNow(setup, parts);
  const int pairs = static_cast<int>(test->log_ratios.size());
  const bool enough_spent =
      pairs >= terms.clear_pairs || ledger.spent.fill_ns + ledger.spent.timed_ns > kClearSpentNs;
  const double left_s = static_cast<double>(parts.budget.RemainingNs()) / 1e9;
  const double spent_s = terms.started_before_s + terms.budget_s - left_s;
  const bool all = pairs >= test->rule.pairs_max;
  const bool last = all || IsOutOfBudget(pairs, terms.budget_s, left_s, terms.started_before_s);
  const std::vector<double> uncharged = UnchargedLogRatios(ledger.samples);
  test->decision = DecideCharged(test->log_ratios, uncharged, test->rule, enough_spent, last);
  const Decision decision = test->decision;
  if (decision == Decision::kUnsettled) {
    WhyUnsettled& why_unsettled = result->result.why_unsettled.emplace();
    if (Decide(test->log_ratios, test->rule, enough_spent, last) == Decision::kSlower) {
      why_unsettled.cause = UnsettledCause::kCharges;
      AddNote(NoteOfCharges(Estimate(uncharged, test->rule).speedup), &result->result);
    } else if (!all && DecideCharged(test->log_ratios, uncharged, test->rule, enough_spent,
                                     false) == Decision::kContinue) {
      why_unsettled = {UnsettledCause::kBudget, BudgetForDecision(pairs, spent_s)};
    } else {
      why_unsettled.cause = UnsettledCause::kNoise;
    }
  }
  if (decision != Decision::kContinue && decision != Decision::kSlower)
    result->worked_ahead = WorkedAhead(ledger.steps, setup.forms.step_wake_ns);
  if (decision == Decision::kFaster)
    test->in_a_row =
        FasterInARow(ledger.steps, setup.forms.alone_ns, terms.threshold * (1 + kAloneMargin));
  terms.progress(SumUp(test->log_ratios, test->rule, spent_s, left_s));
}

// Runs pairs until the test decides. False: a call of the candidate was wrong.
HostResult<bool> RunPairs(const Gate2Setup& setup, GateParts& parts, PairTest* test,
                          Gate2Result* result) {
  // The candidate is watched at the end of this one.
  const int watched_pair = static_cast<int>(parts.random() % kPairsMin);
  while (test->decision == Decision::kContinue) {
    const int index = static_cast<int>(test->log_ratios.size());
    WatchedTime watched;
    const bool watches = index == watched_pair && Stands(Defence::kLibraries);
    const auto pair = RunPair(setup, parts, index, watches ? &watched : nullptr);
    if (!pair) return std::unexpected(pair.error());
    if (watched.libraries) result->libraries = std::move(watched.libraries);
    if (!watched.unseen.empty()) result->libraries_unseen = std::move(watched.unseen);
    switch (pair->end) {
      case PairEnd::kWrong:
        return false;
      case PairEnd::kStartsOver:
        test->log_ratios.clear();
        break;
      case PairEnd::kTooShort:
        break;
      case PairEnd::kGood:
        test->log_ratios.push_back(pair->log_ratio);
        TakeLook(setup, parts, test, result);
    }
  }
  return true;
}

// Fills in the times and the estimate.
void Conclude(const GateParts& parts, const PairTest& test, BaselineResult* speed) {
  const Ledger& ledger = parts.ledger;
  const SpeedEstimate estimate = Estimate(test.log_ratios, test.rule);
  speed->time_ns = Median(ledger.reference_ns);
  speed->candidate_time_ns = Median(ledger.candidate_ns);
  speed->speedup = estimate.speedup;
  speed->ci_low = estimate.low;
  speed->ci_high = estimate.high;
  speed->confidence = estimate.confidence;
  speed->smallest_visible = estimate.smallest_visible;
  speed->certified_speedup = CertifiedSpeedup(test.log_ratios, test.rule);
  speed->delta = test.rule.delta;
  speed->clear_margin = test.rule.clear_margin;
  speed->disturbed_share = ledger.DisturbedShare();
  if (parts.replays.settled()) speed->launched = ledger.Launched();
  speed->pairs = static_cast<int>(test.log_ratios.size());
  speed->rounds = ledger.rounds;
  speed->calls_per_block = static_cast<int>(parts.length.calls);
}

// The result with all that was measured.
Gate2Result WithLedger(Gate2Result result, Ledger ledger) {
  result.samples = std::move(ledger.samples);
  result.checks = std::move(ledger.checks);
  result.spent = ledger.spent;
  return result;
}

}  // namespace

HostResult<Gate2Result> RunGate2(const Gate2Setup& setup) {
  const Span span("gate 2");
  Gate2Result result;
  Deadline budget = Deadline::AfterSeconds(setup.terms.budget_s);
  std::mt19937_64 random(std::random_device{}());
  PoolInputs inputs(setup.values, random);
  GateParts parts(setup.forms, setup.terms, inputs, random, budget);
  if (setup.sides.start_first) {
    const Meter meter(&parts.ledger.spent.start_ns);
    setup.sides.start_first();
  }
  if (auto calibrated = Calibrate(setup, parts); !calibrated)
    return OpponentsTrouble(calibrated.error());
  PairTest test;
  const auto right = RunPairs(setup, parts, &test, &result);
  if (!right) return std::unexpected(right.error());
  if (!*right) return WithLedger(std::move(result), std::move(parts.ledger));
  // The sustained run is in no pair.
  BaselineResult& speed = result.result;
  speed.copies = CopiesOf(setup.forms, parts.copies);
  if (setup.terms.sustained_s > 0) {
    auto sustained = Sustain(setup, parts);
    // The decision stands.
    const bool interrupted =
        !sustained && sustained.error().kind == HostTrouble::Kind::kInterrupted;
    if (!sustained && !interrupted) return std::unexpected(sustained.error());
    if (sustained && !*sustained) return WithLedger(std::move(result), std::move(parts.ledger));
    if (sustained) result.sustained = std::move(**sustained);
  }
  Conclude(parts, test, &speed);
  const Decision decision = WithDoubts(test.decision, setup, parts, test.in_a_row, &result);
  AddNoteOfCopies(setup, parts, decision, &speed);
  AddNoteOfReplays(setup.forms, parts.replays, &speed);
  speed.decision = DecisionName(decision);
  return WithLedger(std::move(result), std::move(parts.ledger));
}

}  // namespace assay
