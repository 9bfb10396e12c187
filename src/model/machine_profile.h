// What `assay doctor` measured on a machine: the ceilings that a percentage of the peak is a
// percentage of, and the noise floor. Schema assay.machine/1; kept in the state folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/dtype.h"

namespace assay {

// What identical programs showed at a duration of one call, as ln-ratios: `delta` the 99th
// percentile of verdicts, `clear_margin` what no single pair exceeded.
struct NoisePoint {
  double call_ns = 0;
  double delta = 0;
  double clear_margin = 0;
};

// Rates of `threads` threads together, each on a core of its own.
struct Ceilings {
  int threads = 0;
  // Memory traffic [bytes/s] over arrays that no cache holds; a copied byte counts twice (read and
  // written), a triad's a = b + s c three times.
  double read_bytes_s = 0, copy_bytes_s = 0, triad_bytes_s = 0;
  // Fused multiply-adds [operations/s], each two operations, by instruction set.
  std::map<std::string, double> float32_operations_s, float64_operations_s;
};

struct CacheLevel {
  int level = 0;
  uint64_t size_bytes = 0;
  int cores = 0;  // that share one
};

struct MachineProfile {
  std::string created;  // ISO 8601, UTC
  std::string cpu;      // as in a verdict's machine record
  int cores = 0;
  std::vector<CacheLevel> caches;   // innermost first, data and unified ones
  std::vector<Ceilings> ceilings;   // one core, then all; empty: not measured
  double empty_call_ns = 0;         // of a native kernel that does next to nothing; 0: not measured
  double empty_python_call_ns = 0;  // of the reference's on the same
  std::vector<NoisePoint> noise;    // in growing order of call_ns; empty: not measured
};

std::string MachineProfileToJson(const MachineProfile& profile);
// Errors (kUsage): not JSON, another schema, a field missing or of the wrong type.
Result<MachineProfile> MachineProfileFromJson(std::string_view text);

// The ceilings for that many threads: measured ones where there are, else one core's times the
// threads, but no more than all cores'. Nothing where none were measured.
Ceilings CeilingsFor(const MachineProfile& profile, int threads);

// The ceiling for traffic of which this share is writes: measured are none (read), a third (triad)
// and half (copy); between them it is interpolated, and beyond half it is copy's.
double BandwidthFor(const Ceilings& ceilings, double written_share);
// Highest rate for arithmetic on this dtype, and the instructions that reach it. Dtypes other than
// float64 take float32's: processors differ too much in what they do for the rest.
struct Rate {
  double operations_s = 0;
  std::string instructions;
};
Rate RateFor(const Ceilings& ceilings, bool float64);

}  // namespace assay
