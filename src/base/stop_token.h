// How work in hand is told to stop: every wait asks its token, and ends with kInterrupted. A signal
// handler may stop a source.
#pragma once

#include <atomic>

namespace assay {

class StopToken {
 public:
  StopToken() = default;  // of work that nobody stops
  // `flag` must outlive the token.
  explicit StopToken(const std::atomic<bool>& flag) : flag_(&flag) {}
  bool stopped() const { return flag_ != nullptr && *flag_; }

 private:
  const std::atomic<bool>* flag_ = nullptr;
};

}  // namespace assay
