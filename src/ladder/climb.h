// Judges the rungs of a ladder at one size: one session, one batch, a row kept as each verdict
// stands. What an earlier call has left is not judged again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ladder/ladder.h"
#include "ladder/rows.h"
#include "session/asked_terms.h"
#include "session/judge.h"

namespace assay {

struct RungResult {
  Rung rung;
  std::optional<LadderRow> row;  // nullopt: not judged
  bool recorded = false;         // the row is an earlier call's
};

// The plan of a call, made before the first rung is judged.
struct ClimbPlan {
  std::vector<RungResult> rungs;  // those chosen, in order; with rows where nothing is to be done
  JudgeRequest request;           // its candidates: the rungs without a row, in order
};

struct PlanTerms {
  AskedTerms asked;        // but for the problem, the device, the precision and the baselines
  MachineProfile profile;  // of `assay doctor`
  std::string judge;       // JudgeName()
  std::string machine;     // the processor's or the GPU's name; empty: not known
  bool again = false;      // judge what stands in `rows`, too
};
// Errors (kUsage): a rung or the problem cannot be read, or the terms make no sense.
Result<ClimbPlan> PlanClimb(const Ladder& ladder, const LadderSize& size,
                            const std::vector<Rung>& rungs, const PlanTerms& terms,
                            const std::vector<LadderRow>& rows);

// The seams of Climb.
struct ClimbTools {
  std::function<Result<void>(const JudgeRequest&, const JudgeEvents&, StopToken)> judge =
      JudgeCandidates;
  std::function<void(const Verdict&)> saw = [](const Verdict&) {};  // whole, samples and all
  std::function<Result<void>(const LadderRow&)> keep = [](const LadderRow&) {
    return Result<void>();
  };
  std::function<int64_t()> now_ns;    // monotonic
  std::function<std::string()> date;  // ISO 8601, UTC
  std::function<void(const ProgressEvent&)> progress = [](const ProgressEvent&) {};
  // Each rung in its order, as soon as its row stands.
  std::function<void(const RungResult&)> finished = [](const RungResult&) {};
};

struct ClimbEnd {
  size_t left = 0;             // rungs without a row
  std::optional<Error> error;  // what ended it early; nullopt: nothing did, or the time was up
};

// Fills the plan's rows. No rung is begun at or after `end_ns`; the rung at work then is judged to
// its end.
ClimbEnd Climb(const std::string& ladder, const std::string& judge, ClimbPlan* plan, int64_t end_ns,
               const std::atomic<bool>& interrupted, const ClimbTools& tools);

// The same plan without judging: the newest row of each rung at this size, of any judge. A rung is
// found by its file's name without its number.
std::vector<RungResult> NewestResults(const Ladder& ladder, const LadderSize& size,
                                      const std::vector<Rung>& rungs,
                                      const std::vector<LadderRow>& rows);

}  // namespace assay
