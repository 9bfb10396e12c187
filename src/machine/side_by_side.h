// Runs one function over several inputs side by side, on at most as many threads as there are
// cores. Destruction waits for all of them.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "machine/machine.h"

namespace assay {

template <typename Input, typename Output>
class SideBySide {
 public:
  using Function = std::function<Output(const Input&)>;
  // Starts at once. The inputs must outlive this object. `run` is called from several threads; a
  // sandbox that it starts must end before it returns.
  SideBySide(std::vector<const Input*> inputs, Function run)
      : inputs_(std::move(inputs)), run_(std::move(run)), promises_(inputs_.size()) {
    for (auto& promise : promises_) futures_.push_back(promise.get_future());
    const size_t workers = std::min(inputs_.size(), UsableCpus().size());
    for (size_t i = 0; i < workers; ++i) threads_.emplace_back([this] { Work(); });
  }

  // Returns true until this output is taken.
  bool Holds(size_t index) const { return futures_[index].valid(); }
  // Waits for one output; each index may be taken once.
  Output Take(size_t index) { return futures_[index].get(); }
  // Waits for all.
  void Await() const {
    for (const auto& future : futures_)
      if (future.valid()) future.wait();
  }

 private:
  void Work() {
    for (size_t index; (index = next_++) < inputs_.size();)
      promises_[index].set_value(run_(*inputs_[index]));
  }

  std::vector<const Input*> inputs_;
  Function run_;
  std::vector<std::promise<Output>> promises_;
  std::vector<std::future<Output>> futures_;
  std::atomic<size_t> next_ = 0;
  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

}  // namespace assay
