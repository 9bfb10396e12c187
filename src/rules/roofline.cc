#include "rules/roofline.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

std::string Megabytes(double bytes) {
  return bytes < 1e6 ? fmt::format("{:.0f} KB", bytes / 1e3)
                     : fmt::format("{:.1f} MB", bytes / 1e6);
}

// Why a time may lie below the bound: what is ruled out is said, too.
std::string ExplainOverPeak(const Work& work, const MachineProfile& profile,
                            const Roofline& roofline) {
  if (roofline.regime == "memory") {
    for (const CacheLevel& cache : profile.caches)
      if (work.bytes <= static_cast<double>(cache.size_bytes))
        return fmt::format(
            "over 100%: its {} fit into the level-{} cache of {}, which is faster than memory",
            Megabytes(work.bytes), cache.level, Megabytes(static_cast<double>(cache.size_bytes)));
    return "over 100%, and no cache holds its data: the ceilings are too low (run assay doctor on "
           "a "
           "quiet machine), or it need not move all of its bytes";
  }
  if (roofline.regime == "compute")
    return "over 100%: it needs fewer operations than were counted for the problem, or the "
           "ceilings are too low (run assay doctor on a quiet machine)";
  return "over 100%: about as fast as a call that does nothing";
}

struct UnitRate {
  double operations_s = 0;
  std::string name;
};

void Raise(const GpuCeilings& gpu, const std::string& name, UnitRate* rate) {
  const auto found = gpu.arithmetic.find(name);
  if (found == gpu.arithmetic.end() || !(found->second.best > rate->operations_s)) return;
  *rate = {found->second.best, fmt::format("{} ({})", name, found->second.how)};
}

// The ordinary units: float32's where a dtype has none of its own, or slower ones.
UnitRate OrdinaryRate(const GpuDemand& demand, const GpuCeilings& gpu) {
  UnitRate rate;
  if (demand.dtype == "float64") {
    Raise(gpu, "float64", &rate);
    return rate;
  }
  Raise(gpu, "float32", &rate);
  if (demand.dtype == "float16" || demand.dtype == "bfloat16") Raise(gpu, demand.dtype, &rate);
  return rate;
}

// The matrix units, for what they compute in this dtype, or in a class that was openly allowed.
UnitRate MatrixRate(const GpuDemand& demand, const GpuCeilings& gpu) {
  UnitRate rate = OrdinaryRate(demand, gpu);
  if (demand.dtype.starts_with("float8")) Raise(gpu, "tensor_float8", &rate);
  if (demand.dtype == "float16" || demand.dtype == "bfloat16" || demand.dtype == "float64")
    Raise(gpu, "tensor_" + demand.dtype, &rate);
  if (demand.dtype == "float32" && demand.required_class == "tf32")
    Raise(gpu, "tensor_tf32", &rate);
  if (demand.dtype == "float32" && demand.required_class == "bfloat16")
    Raise(gpu, "tensor_bfloat16", &rate);
  return rate;
}

// What a percentage on a GPU leaves open. The judge flushes caches before each block, and each call
// of a block has data of its own.
std::string ExplainGpu(const Work& work, const GpuDemand& demand, const GpuCeilings& gpu,
                       const MeasuredTimes& times, const Roofline& roofline) {
  const bool over = roofline.percent_of_peak > 100;
  const std::string over_text = over ? "over 100%: " : "";
  if (roofline.regime == "overhead")
    return over_text + "launch-bound: what it must do takes less than a launch";
  if (over && roofline.regime == "compute") {
    const bool in_tf32 = demand.matrix_share > 0 && roofline.instructions.starts_with("float32");
    return fmt::format(
        "over 100%: {}it needs fewer operations than were counted for the problem, or the ceilings "
        "are too low (run assay doctor while the GPU is idle)",
        in_tf32 ? "it computes in tf32, or " : "");
  }
  if (!over && times.candidate_ns < 2 * gpu.launch_and_wait_ns)
    return fmt::format(
        "latency-bound: a launch that does nothing, waited for, takes {:.1f} us alone",
        gpu.launch_and_wait_ns / 1e3);
  if (roofline.regime == "memory" && work.bytes <= static_cast<double>(gpu.l2_bytes))
    return fmt::format(
        "{}its {} fit into the L2 cache of {}, which is faster than memory; counted is memory, as "
        "caches are flushed before each block and each call has other data",
        over_text, Megabytes(work.bytes), Megabytes(static_cast<double>(gpu.l2_bytes)));
  if (over)
    return over_text +
           "its bytes do not fit into the L2 cache: the ceilings are too low (run "
           "assay doctor while the GPU is idle), or it need not move all of them";
  return roofline.note;
}

}  // namespace

std::optional<Roofline> MakeGpuRoofline(const Work& work, const GpuDemand& demand,
                                        const GpuCeilings& gpu, const MeasuredTimes& times) {
  if (!(times.candidate_ns > 0 && times.reference_ns > 0)) return std::nullopt;
  const UnitRate ordinary = OrdinaryRate(demand, gpu), matrix = MatrixRate(demand, gpu);
  Roofline roofline;
  roofline.bandwidth_bytes_s =
      GpuBandwidthFor(gpu, work.bytes > 0 ? work.written_bytes / work.bytes : 0);
  if (!(roofline.bandwidth_bytes_s > 0 && ordinary.operations_s > 0)) return std::nullopt;
  // Both kinds of units work at the same time.
  const double matrix_ns = work.operations * demand.matrix_share / matrix.operations_s * 1e9;
  const double ordinary_ns =
      work.operations * (1 - demand.matrix_share) / ordinary.operations_s * 1e9;
  const UnitRate& rate = matrix_ns > ordinary_ns ? matrix : ordinary;
  roofline.rate_operations_s = rate.operations_s;
  roofline.instructions = rate.name;
  const double launch_ns = times.replayed ? 0 : gpu.launch_ns;
  roofline.empty_call_ns = launch_ns;
  const double compute_ns = std::max(matrix_ns, ordinary_ns);
  const double memory_ns = work.bytes / roofline.bandwidth_bytes_s * 1e9;
  roofline.bound_ns = std::max({memory_ns, compute_ns, launch_ns});
  roofline.regime = roofline.bound_ns == memory_ns    ? "memory"
                    : roofline.bound_ns == compute_ns ? "compute"
                                                      : "overhead";
  if (work.operations_from == "unknown")
    roofline.note = "nobody counted its operations: the bound is memory's alone";
  else if (times.candidate_copies)
    roofline.note = "counts the copy of its results into the judge's slots";
  const double copy_ns = 2 * work.written_bytes / GpuBandwidthFor(gpu, 0.5) * 1e9;
  const double reference_ns = roofline.bound_ns + (times.reference_copies ? copy_ns : 0);
  if (times.candidate_copies) roofline.bound_ns += copy_ns;
  roofline.percent_of_peak = 100 * roofline.bound_ns / times.candidate_ns;
  roofline.reference_percent_of_peak = 100 * reference_ns / times.reference_ns;
  roofline.note = ExplainGpu(work, demand, gpu, times, roofline);
  return roofline;
}

std::optional<Roofline> MakeBound(const Work& work, bool float64, const MachineProfile& profile,
                                  int threads, bool python_candidate) {
  const Ceilings ceilings = CeilingsFor(profile, threads);
  const Rate rate = RateFor(ceilings, float64);
  Roofline roofline;
  roofline.bandwidth_bytes_s =
      BandwidthFor(ceilings, work.bytes > 0 ? work.written_bytes / work.bytes : 0);
  roofline.rate_operations_s = rate.operations_s;
  roofline.instructions = rate.instructions;
  if (!(roofline.bandwidth_bytes_s > 0 && rate.operations_s > 0)) return std::nullopt;
  roofline.empty_call_ns = python_candidate ? profile.empty_python_call_ns : profile.empty_call_ns;
  const double memory_ns = work.bytes / roofline.bandwidth_bytes_s * 1e9;
  const double compute_ns = work.operations / rate.operations_s * 1e9;
  roofline.bound_ns = std::max({memory_ns, compute_ns, roofline.empty_call_ns});
  roofline.regime = roofline.bound_ns == memory_ns    ? "memory"
                    : roofline.bound_ns == compute_ns ? "compute"
                                                      : "overhead";
  if (work.operations_from == "unknown")
    roofline.note = "nobody counted its operations: the bound is memory's alone";
  return roofline;
}

std::optional<Roofline> MakeRoofline(const Work& work, bool float64, const MachineProfile& profile,
                                     int threads, const MeasuredTimes& times) {
  if (!(times.candidate_ns > 0 && times.reference_ns > 0)) return std::nullopt;
  auto roofline = MakeBound(work, float64, profile, threads, times.python_candidate);
  if (!roofline) return std::nullopt;
  roofline->percent_of_peak = 100 * roofline->bound_ns / times.candidate_ns;
  roofline->reference_percent_of_peak = 100 * roofline->bound_ns / times.reference_ns;
  if (roofline->percent_of_peak > 100) roofline->note = ExplainOverPeak(work, profile, *roofline);
  return roofline;
}

}  // namespace assay
