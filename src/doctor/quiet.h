// Tells whether other programs kept the processors busy while something was measured.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace assay {

// The processors' times until one moment.
struct BusyTimes {
  double all_s = 0;  // of all programs and of other machines on the same hardware, over the CPUs
  double own_s = 0;  // of this process
  int64_t at_ns = 0;
};

// Reads the times of these CPUs; all_s stays 0 where Linux does not tell them.
BusyTimes ReadBusyTimes(std::span<const int> cpus);

// Returns the busy seconds of these CPUs by the text of /proc/stat, of which `ticks` are a second.
double BusySeconds(std::string_view stat, std::span<const int> cpus, double ticks);

// Returns the number of cores that others used between two moments, on average.
double CoresOfOthers(const BusyTimes& begin, const BusyTimes& end);

// The other programs that ran beside one measurement of ceilings.
struct CeilingSigns {
  double cores_of_others = 0;
  // PyTorch's rate over the ceiling; 0: not known.
  double product_share = 0;
};

// Returns false if others used more than a twentieth of the cores, or if a product exceeded its
// ceiling by more than a tenth, which others can cause in ways that no time shows.
bool CeilingsStand(const CeilingSigns& signs, size_t cores);

// Measures until a measurement stands, three times at most. Returns the last one's signs.
Result<CeilingSigns> MeasureUntilQuiet(size_t cores,
                                       const std::function<Result<CeilingSigns>()>& measure);

}  // namespace assay
