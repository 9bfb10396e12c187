// Collects the places and values of an output's wrong elements: the facts for hints. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rules/gate1.h"

namespace assay {

struct WrongSample {
  int64_t index = 0;
  double got = 0;
  double expected = 0;
};

// An output seen as rows of its last dimension.
struct WrongSet {
  int64_t count = 0;  // of wrong elements
  int64_t elements = 0;
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t first = 0, last = 0;  // flat indices
  int64_t nan = 0, infinite = 0, zero = 0;
  int64_t finite = 0;    // where NaN or an infinity belongs
  int64_t poisoned = 0;  // equal to the bytes before the call
  // Empty if there are more than four million rows or columns: memory stays bounded.
  std::vector<int64_t> wrong_in_row;
  std::vector<int64_t> wrong_in_column;
  std::vector<WrongSample> samples;  // at most kWrongSamplesMax, spread over all wrong elements
};
inline constexpr size_t kWrongSamplesMax = 4096;

// Collects elements that are wrong by the rule of the output's own precision. `poison` may be null.
WrongSet CollectWrong(const OutputView& output, const void* poison);

// Returns "only the last 3 of 1000 columns are wrong: a boundary", for example; empty if the wrong
// elements lie everywhere or follow no pattern.
std::string DescribePlace(const WrongSet& wrong);

// Returns "off by a factor of 2.000", "the sign is flipped" (kFactor), "shifted by one"
// (kMisplaced)...; empty text if the values show no pattern.
Hint DescribeValues(const OutputView& output, const WrongSet& wrong);

}  // namespace assay
