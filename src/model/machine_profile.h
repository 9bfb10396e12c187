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

// A rate of a GPU: the best of several blocks of at least 20 ms, their median, and what reached it
// ("wgmma m64n256k16", "8 x 256 threads a multiprocessor").
struct GpuRate {
  double best = 0, median = 0;
  std::string how;
};

// What one GPU reaches, by the clock of the processor around blocks of launches.
struct GpuCeilings {
  std::string created;                     // ISO 8601, UTC
  std::string name, uuid, architecture;    // "NVIDIA H200", "GPU-...", "sm_90a"
  int driver_version = 0;                  // 13000: CUDA 13.0
  uint64_t l2_bytes = 0;                   // as the driver says
  std::map<std::string, GpuRate> traffic;  // "read", "copy" (both ways), "l2_read" [bytes/s]
  // A multiply-add is two [operations/s]: "float32", "float64", "float16", "bfloat16" by the
  // ordinary units, "tensor_float16", "tensor_tf32"... by the matrix units.
  std::map<std::string, GpuRate> arithmetic;
  double launch_ns = 0;            // of an empty kernel, one of many in a row
  double launch_and_wait_ns = 0;   // of one that is waited for; median
  std::vector<std::string> notes;  // what could not be measured, and why
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
  std::vector<GpuCeilings> gpus;    // each GPU that was measured here, once
};

std::string MachineProfileToJson(const MachineProfile& profile);
// Errors (kUsage): not JSON, another schema, a field missing or of the wrong type.
Result<MachineProfile> MachineProfileFromJson(std::string_view text);

// The ceilings of this very GPU under this driver; null where others alone were measured.
const GpuCeilings* FindGpuCeilings(const MachineProfile& profile, std::string_view uuid,
                                   int driver_version);
// Puts one GPU's ceilings in the place of its earlier ones.
void KeepGpuCeilings(GpuCeilings ceilings, MachineProfile* profile);
// The best rate of that name; 0: not measured.
double BestRate(const std::map<std::string, GpuRate>& rates, const std::string& name);

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
// As BandwidthFor(), of a GPU: between reads and copies.
double GpuBandwidthFor(const GpuCeilings& ceilings, double written_share);

}  // namespace assay
