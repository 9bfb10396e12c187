// Builds several candidates side by side. Each thread runs one build at a time and outlives its
// sandbox.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "base/result.h"
#include "pipeline/candidate.h"

namespace assay {

class Builds {
 public:
  using Function = std::function<Result<BuiltCandidate>(const CandidateSource&)>;
  // Starts at once, on as many threads as there are cores. The sources must outlive this object;
  // `build` is called from several threads.
  Builds(std::vector<const CandidateSource*> sources, Function build);

  // Waits for one build; each index may be taken once.
  Result<BuiltCandidate> Take(size_t index) { return futures_[index].get(); }

 private:
  void Work();

  std::vector<const CandidateSource*> sources_;
  Function build_;
  std::vector<std::promise<Result<BuiltCandidate>>> promises_;
  std::vector<std::future<Result<BuiltCandidate>>> futures_;
  std::atomic<size_t> next_ = 0;
  std::vector<std::jthread> threads_;  // last: joined before what they use goes
};

}  // namespace assay
