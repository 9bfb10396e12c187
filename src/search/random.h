// Random numbers of a search. Each step has its own stream, named by the search's seed and the
// step's key: so a search that is gone on with draws as it would have. They never reach the judge.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay {

class StepRandom {
 public:
  StepRandom(uint64_t seed, std::string_view key);
  uint64_t Next();
  // 0 to count - 1.
  size_t Below(size_t count);
  // 0 to 1, without 1.
  double Unit();

 private:
  uint64_t state_;
};

}  // namespace assay
