// Asks a proposer on threads of its own, so that answers come while candidates are judged.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "search/sources.h"

namespace assay {

class Proposals : public AnswerSource {
 public:
  // The proposer must outlive this object.
  Proposals(Proposer& proposer, size_t threads);
  ~Proposals() override;  // waits until the threads have ended: they stop as soon as they can

  Result<void> Check(const Prompt& prompt) const override { return proposer_.Check(prompt); }
  void Add(const Prompt& prompt) override;
  bool busy() const override;
  bool Await(int timeout_ms) override;
  std::vector<Proposed> Take() override;
  Usage Reservation(const Prompt& prompt) const override { return proposer_.Reservation(prompt); }
  bool IsFree() const override { return proposer_.IsFree(); }
  size_t asked_at_once() const override { return threads_.size(); }

 private:
  void Work();

  Proposer& proposer_;
  std::atomic<bool> ends_ = false;
  mutable std::mutex mutex_;
  std::condition_variable more_, ready_;
  std::deque<Prompt> waiting_;  // guarded by mutex_, like all below
  std::vector<Proposed> done_;
  size_t in_hand_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace assay
