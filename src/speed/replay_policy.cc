#include "speed/replay_policy.h"

#include "base/check.h"

namespace assay {

bool ReplayPolicy::BeginTry() {
  if (state_ != State::kUntried) return false;
  state_ = State::kNo;
  return true;
}

void ReplayPolicy::Start() {
  ASSAY_CHECK(may_replay_);
  replaying_ = true;
}

void ReplayPolicy::GiveUp() {
  Decline();
  given_up_ = true;
}

void ReplayPolicy::Decline() {
  state_ = State::kNo;
  replaying_ = missed_ = false;
}

}  // namespace assay
