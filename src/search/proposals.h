// Asks a proposer on threads of its own, so that answers come while candidates are judged.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "propose/proposer.h"

namespace assay {

struct Proposed {
  std::string key;
  Result<Answer> answer;
};

class Proposals {
 public:
  // The proposer must outlive this object.
  Proposals(Proposer& proposer, size_t threads);
  ~Proposals();  // waits until the threads have ended: they stop as soon as they can

  void Add(const Prompt& prompt);
  // True while an answer was not taken.
  bool busy() const;
  std::vector<Proposed> Take();
  const Proposer& proposer() const { return proposer_; }
  size_t threads() const { return threads_.size(); }

 private:
  void Work();

  Proposer& proposer_;
  std::atomic<bool> ends_ = false;
  mutable std::mutex mutex_;
  std::condition_variable more_;
  std::deque<Prompt> waiting_;  // guarded by mutex_, like all below
  std::vector<Proposed> done_;
  size_t in_hand_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace assay
