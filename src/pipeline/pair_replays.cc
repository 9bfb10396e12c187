// Blocks that are replays of CUDA graphs (docs/protocol.md): where launching takes longer than the
// work, what is timed would be launches.
#include "base/median.h"
#include "base/trace.h"
#include "judge/replays.h"
#include "pipeline/pair_runner.h"

namespace assay {

HostResult<bool> PairRunner::SettleReplays(Side early, Side late, const LaunchedTimes& launched) {
  if (!setup_.may_replay || replays_ == Replays::kNo) return true;
  const bool untried = replays_ == Replays::kUntried;
  if (untried) replays_ = Replays::kNo;
  if (untried && (calls_ == 1 || !MayBeBoundByLaunches(launched))) return true;
  const Span span("replay");
  replaying_ = true;
  LaunchedTimes replayed;
  auto right =
      Exchange(early, late, calls_, &replayed.reference_ns, &replayed.candidate_ns, nullptr);
  if (right && !*right) return false;
  // A reference whose calls are others when they are captured is run as it is.
  const bool odd = !right && result_->opponent_trouble &&
                   result_->opponent_trouble->kind == HostTrouble::Kind::kFailed;
  if (!right && !(odd && untried)) return right;
  if (!untried) {
    if (replay_missed_) return std::unexpected(NoteMissedReplay());
  } else if (odd || replay_missed_ || !LaunchesBind(launched, replayed)) {
    result_->opponent_trouble.reset();
    replaying_ = replay_missed_ = false;
    return true;
  }
  replays_ = Replays::kYes;
  launched_reference_ns_.push_back(launched.reference_ns);
  launched_candidate_ns_.push_back(launched.candidate_ns);
  return true;
}

HostTrouble PairRunner::NoteMissedReplay() {
  HostTrouble trouble;
  trouble.kind = HostTrouble::Kind::kFailed;
  trouble.message = "a host could not capture its calls as a CUDA graph, as it had done before";
  result_->opponent_trouble = trouble;
  return trouble;
}

std::optional<LaunchedTimes> PairRunner::launched() const {
  if (replays_ != Replays::kYes) return std::nullopt;
  return LaunchedTimes{Median(launched_reference_ns_), Median(launched_candidate_ns_)};
}

}  // namespace assay
