// Takes one candidate through the gates, on a batch of values.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "correctness/size_run.h"
#include "model/event.h"
#include "session/batch.h"
#include "session/host_schedule.h"
#include "session/workbench.h"
#include "speed/gate2_run.h"

namespace assay {

// The inputs of a trial; all of them outlive it.
struct TrialSetup {
  Workbench& bench;
  Batch& batch;
  HostSchedule& schedule;
  const BuiltCandidate& candidate;
  const BuiltCandidate* against = nullptr;  // the opponent; null: the baselines of the terms
  bool correctness_only = false;
  Bar bar = {};
  std::function<void(JudgeStage stage, const std::string& text, double fraction)> progress;
  std::function<void()> before_timing;  // waits for work that would run beside a measurement
};

class Trial {
 public:
  explicit Trial(TrialSetup setup) : setup_(std::move(setup)) {}
  // Returns the gates' verdict. Errors: trouble that is not the candidate's doing.
  Result<Verdict> Run(HostsOfCandidate& hosts);
  // True if the candidate, or a second reference that checked its rounding, lacked memory.
  bool wants_room() const { return wants_room_; }
  // True if its speed was measured to a decision.
  bool settled() const { return settled_; }
  // Set if its values were wrong, and may be right on the weights that its constructor makes.
  const std::optional<WeightsMatch>& asks_for_constructed() const { return asks_for_constructed_; }

 private:
  // Each returns true if the verdict is final.
  Result<bool> PassGates(HostsOfCandidate& hosts, Verdict* verdict);
  Result<bool> PassCorrectness(CandidateHosts& hosts, Verdict* verdict);
  Result<bool> PassOtherSizes(HostsOfCandidate& hosts, Verdict* verdict);
  Result<bool> PassOtherSize(CandidateHosts& hosts, OtherSize& other, Verdict* verdict);
  // Ends the verdict as `correct` and returns true if no speed is asked for.
  bool EndsCorrect(Verdict* verdict) const;
  // Ends it unsettled, and says what would do, if the time for speed does not hold one pair.
  bool EndsForTime(Verdict* verdict) const;
  // Runs the speed gate against all opponents that are asked for (trial_speed.cc).
  Result<bool> PassBaselines(CandidateHosts& hosts, Verdict* verdict);
  struct SpeedOutcome {
    bool final = false;
    std::optional<HostTrouble> opponent_trouble;
  };
  Result<SpeedOutcome> PassSpeed(CandidateHosts& hosts, const std::string& baseline,
                                 Verdict* verdict);
  // Returns the facts that follow from the two sides' forms, and from where they run.
  Forms FormsBeside(const std::string& baseline) const;
  // Returns the work that the speed gate may take. `cheap`: hosts of both sides start fast.
  Terms TermsBeside(const std::string& baseline, bool cheap, const CandidateHosts& hosts,
                    const Verdict& verdict) const;
  void Settle(Verdict* verdict) const;
  // Adds a note on a win over a baseline that is easy to beat.
  void NoteBaseline(Verdict* verdict) const;
  // Describes the failing call in the verdict, as its outcome. Errors (kUnjudged): the candidate
  // needs what is not here.
  Result<void> SayWhatFailed(const Gate1Result& result, Verdict* verdict);
  // Finds out whether wrong values come from the weights, and says so.
  Result<void> LookAtWeights(const AtSize& size, const Gate1Result& result, Verdict* verdict);
  // Runs gate 1 again, with the same weights in all calls.
  Result<bool> IsRightWithConstant(AtSize size, Verdict* verdict);
  SizeRunTerms OtherSizeTerms() const;
  bool AsksForSpeed() const;
  DeviceQueues Queues() const { return setup_.schedule.QueuesFor(setup_.candidate.source.content); }

  TrialSetup setup_;
  double call_ns_ = 0;  // from the correctness gate, rough
  bool wants_room_ = false;
  bool settled_ = false;
  std::optional<WeightsMatch> asks_for_constructed_;
};

}  // namespace assay
