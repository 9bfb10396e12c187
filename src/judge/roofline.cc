#include "judge/roofline.h"

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

}  // namespace

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
