// Blocks that are replays of CUDA graphs (docs/protocol.md): launching is no part of what is timed
// then.
#include <algorithm>

#include "base/median.h"
#include "base/trace.h"
#include "rules/replays.h"
#include "speed/pair_runner.h"

namespace assay {
namespace {

constexpr int kTries = 3;

}  // namespace

HostResult<bool> PairRunner::TimeBlocks(Side early, Side late, LaunchedTimes* times) {
  only_times_ = true;
  HostResult<bool> right = true;
  for (int i = 0; i < kTries; ++i) {
    right = Exchange(early, late, calls_, &times->reference_ns, &times->candidate_ns, nullptr);
    if (!right || !*right || !block_disturbed_) break;
  }
  only_times_ = false;
  return right;
}

HostResult<bool> PairRunner::SettleReplays(Side early, Side late) {
  if (!setup_.may_replay || calls_ == 1 || replays_ == Replays::kNo) return true;
  const Span span("replay");
  const bool untried = replays_ == Replays::kUntried;
  if (untried) replays_ = Replays::kNo;
  LaunchedTimes launched, replayed;
  if (auto right = TimeBlocks(early, late, &launched); !right || !*right) return right;
  if (untried && !LaunchingCounts(launched)) return true;
  replaying_ = true;
  // First with a look at the opponent's outputs: a reference whose calls give others when they are
  // captured is run as it is.
  auto right =
      Exchange(early, late, calls_, &replayed.reference_ns, &replayed.candidate_ns, nullptr);
  if (untried && right && *right) right = TimeBlocks(early, late, &replayed);
  if (right && !*right) return false;
  const bool differs =
      !right && right.error().of_opponent && right.error().kind == HostTrouble::Kind::kFailed;
  if (!right && !(differs && untried)) {
    if (right.error().of_opponent)
      right.error().message +=
          " (while its calls were captured as a CUDA graph, which --no-replay leaves out)";
    return right;
  }
  if (!untried && replay_missed_) {
    StartOver();
    return true;
  }
  if (untried && (differs || replay_missed_)) {
    replaying_ = replay_missed_ = false;
    return true;
  }
  replays_ = Replays::kYes;
  launched_reference_ns_.push_back(launched.reference_ns);
  launched_candidate_ns_.push_back(launched.candidate_ns);
  if (untried) call_ns_ = std::max(100.0, std::min(replayed.reference_ns, replayed.candidate_ns));
  return true;
}

std::nullopt_t PairRunner::StartOver() {
  starts_over_ = true;
  replays_ = Replays::kNo;
  replaying_ = replay_missed_ = false;
  result_->samples.clear();
  for (auto* times :
       {&reference_ns_, &candidate_ns_, &launched_reference_ns_, &launched_candidate_ns_})
    times->clear();
  steps_.clear();
  return std::nullopt;
}

std::optional<LaunchedTimes> PairRunner::launched() const {
  if (replays_ != Replays::kYes) return std::nullopt;
  return LaunchedTimes{Median(launched_reference_ns_), Median(launched_candidate_ns_)};
}

}  // namespace assay
