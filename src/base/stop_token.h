// Tells work in hand to stop: every wait asks its token, and ends with kInterrupted if it is
// stopped. Any thread or signal handler may set the flag. Tokens are cheap to copy.
#pragma once

#include <atomic>

namespace assay {

class StopToken {
 public:
  StopToken() = default;  // never stopped
  // `flag` must outlive the token.
  explicit StopToken(const std::atomic<bool>& flag) : flag_(&flag) {}
  // Stopped by either flag.
  StopToken(const std::atomic<bool>& flag, const std::atomic<bool>& other)
      : flag_(&flag), other_(&other) {}
  bool stopped() const { return (flag_ != nullptr && *flag_) || (other_ != nullptr && *other_); }

 private:
  const std::atomic<bool>* flag_ = nullptr;
  const std::atomic<bool>* other_ = nullptr;
};

}  // namespace assay
