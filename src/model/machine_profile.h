// The measurements of `assay doctor` on one machine: its ceilings, to which a percentage of the
// peak refers, and its noise floor. Schema assay.machine/1; kept in the state folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/dtype.h"

namespace assay {

// Differences between identical programs whose calls last `call_ns`, as ln-ratios: `delta` is the
// 99th percentile of verdicts; no single pair exceeded `clear_margin`.
struct NoisePoint {
  double call_ns = 0;
  double delta = 0;
  double clear_margin = 0;
};

// Rates of `threads` threads together, each on a core of its own.
struct Ceilings {
  int threads = 0;
  // Memory traffic [bytes/s] over arrays that no cache holds. A copied byte counts twice (read and
  // written), a byte of the triad a = b + s c three times.
  double read_bytes_s = 0, copy_bytes_s = 0, triad_bytes_s = 0;
  // Fused multiply-adds [operations/s], each two operations, by instruction set.
  std::map<std::string, double> float32_operations_s, float64_operations_s;
};

struct CacheLevel {
  int level = 0;
  uint64_t size_bytes = 0;
  int cores = 0;  // cores that share one such cache
};

// A rate of a GPU: the best and the median of several blocks of at least 20 ms, and the kernel that
// reached it ("wgmma m64n256k16", "8 x 256 threads a multiprocessor").
struct GpuRate {
  double best = 0, median = 0;
  std::string how;
};

// The ceilings of one GPU, timed by the CPU's clock around blocks of launches.
struct GpuCeilings {
  std::string created;                     // ISO 8601, UTC
  std::string name, uuid, architecture;    // "NVIDIA H200", "GPU-...", "sm_90a"
  int driver_version = 0;                  // 13000: CUDA 13.0
  uint64_t l2_bytes = 0;                   // from the driver
  std::map<std::string, GpuRate> traffic;  // "read", "copy" (both ways), "l2_read" [bytes/s]
  // [operations/s], a multiply-add counts as two: "float32", "float64", "float16", "bfloat16" by
  // the ordinary units, "tensor_float16", "tensor_tf32"... by the matrix units.
  std::map<std::string, GpuRate> arithmetic;
  double launch_ns = 0;            // of an empty kernel, one of many in a row
  double launch_and_wait_ns = 0;   // of an empty kernel and the wait for it; median
  std::vector<std::string> notes;  // measurements that failed, and why
};

struct MachineProfile {
  std::string created;  // ISO 8601, UTC
  std::string cpu;      // as in a verdict's machine record
  int cores = 0;
  std::vector<CacheLevel> caches;   // innermost first, data and unified ones
  std::vector<Ceilings> ceilings;   // one core, then all; empty: not measured
  double empty_call_ns = 0;         // of a native kernel that does next to nothing; 0: not measured
  double empty_python_call_ns = 0;  // of that problem's reference, in Python
  std::vector<NoisePoint> noise;    // in growing order of call_ns; empty: not measured
  std::vector<GpuCeilings> gpus;    // each GPU that was measured on this machine, once
};

std::string MachineProfileToJson(const MachineProfile& profile);
// Errors (kUsage): not JSON, another schema, a field missing or of the wrong type.
Result<MachineProfile> MachineProfileFromJson(std::string_view text);

// Returns the ceilings of this GPU under this driver, one of `profile.gpus`; null: not measured.
const GpuCeilings* FindGpuCeilings(const MachineProfile& profile, std::string_view uuid,
                                   int driver_version);
// Adds one GPU's ceilings, in the place of its earlier ones.
void KeepGpuCeilings(GpuCeilings ceilings, MachineProfile* profile);
// Returns the best rate of that name; 0: not measured.
double BestRate(const std::map<std::string, GpuRate>& rates, const std::string& name);

// Returns the ceilings for that many threads: the measured ones if there are any, else one core's
// times the threads, at most all cores'. All 0 if none were measured.
Ceilings CeilingsFor(const MachineProfile& profile, int threads);

// Returns the ceiling [bytes/s] for traffic of which this share is writes. It is interpolated
// between the measured shares: none (read), a third (triad) and half (copy). Beyond half it is
// copy's.
double BandwidthFor(const Ceilings& ceilings, double written_share);
// Highest rate for arithmetic on a dtype, and the instructions that reach it. Dtypes other than
// float64 take float32's, since processors differ too much in their support of the rest.
struct Rate {
  double operations_s = 0;
  std::string instructions;
};
Rate RateFor(const Ceilings& ceilings, bool float64);
// As BandwidthFor(), for a GPU: interpolated between reads and copies.
double GpuBandwidthFor(const GpuCeilings& ceilings, double written_share);

}  // namespace assay
