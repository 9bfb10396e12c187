// Where the wrong elements of an output lie and what they hold: the facts that hints are made of.
// Pure.
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
  int64_t poisoned = 0;  // equal to the bytes that stood there before the call
  // Empty where there are more than four million lines: memory stays bounded.
  std::vector<int64_t> wrong_in_row;
  std::vector<int64_t> wrong_in_column;
  std::vector<WrongSample> samples;  // at most kWrongSamplesMax, spread over all wrong elements
};
inline constexpr size_t kWrongSamplesMax = 4096;

// Wrong by the rule of the output's own precision. `poison` may be null.
WrongSet CollectWrong(const OutputView& output, const void* poison);

// "only the last 3 of 1000 columns are wrong: a boundary"; empty when the wrong elements lie
// everywhere or anyhow.
std::string DescribePlace(const WrongSet& wrong);

// "off by a factor of 2.000", "the sign is flipped", "shifted by one"...; empty when the values
// show no such pattern.
std::string DescribeValues(const OutputView& output, const WrongSet& wrong);

}  // namespace assay
