#include "rules/bottleneck.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/profile_finding.h"

namespace assay {
namespace {

constexpr double kNearPeakPercent = 85;
constexpr double kLowOccupancy = 0.25;
constexpr double kEmptyTail = 0.4;  // share of the last wave that is used
constexpr double kFewWaves = 4;     // with more of them, the last one matters little
constexpr int kWideLoadBytes = 16;

bool Has(const KernelRecord& kernel, const char* kind) {
  return kernel.instructions.contains(kind);
}

bool IsLaunched(const KernelRecord& kernel) { return kernel.launches > 0; }

std::string Spills(const KernelRecord& kernel) {
  if (kernel.stack_bytes == 0) return {};
  // A frame for what a function call needs touches no local memory by itself.
  if (!kernel.instructions.empty() && !Has(kernel, "local")) return {};
  return fmt::format(
      "{} keeps {} bytes a thread in local memory, beside {} registers: registers that were "
      "spilled, or an array that is indexed at run time",
      kernel.name, kernel.stack_bytes, kernel.registers);
}

// Where it is so in every launch: a last small one is how reductions end.
std::string FewBlocks(const Verdict& verdict, int multiprocessors) {
  for (const KernelRecord& each : verdict.kernels)
    if (!IsLaunched(each) || each.blocks >= multiprocessors) return {};
  if (verdict.kernels.empty()) return {};
  const KernelRecord& kernel =
      *std::max_element(verdict.kernels.begin(), verdict.kernels.end(),
                        [](const auto& a, const auto& b) { return a.blocks < b.blocks; });
  return fmt::format("{} has {} block{} for {} multiprocessors: the others have nothing to do",
                     kernel.name, kernel.blocks, kernel.blocks == 1 ? "" : "s", multiprocessors);
}

// Where only the matrix units reach the rate that bounds the problem.
std::string NoMatrixUnits(const Verdict& verdict) {
  if (!verdict.roofline || verdict.roofline->regime != "compute" ||
      !verdict.roofline->instructions.starts_with("tensor") || verdict.kernels.empty())
    return {};
  // Where launches are not known, neither is whether these are all of its kernels.
  for (const KernelRecord& kernel : verdict.kernels)
    if (!IsLaunched(kernel) || kernel.instructions.empty() || Has(kernel, "matrix")) return {};
  return fmt::format("no kernel has a matrix instruction, and only matrix units reach {}",
                     verdict.roofline->instructions);
}

std::string LowOccupancy(const KernelRecord& kernel) {
  if (!IsLaunched(kernel) || kernel.occupancy >= kLowOccupancy || kernel.limiter.empty()) return {};
  // Copies that run by themselves, or matrix units, keep a multiprocessor busy with few warps.
  if (Has(kernel, "async_copy") || Has(kernel, "matrix")) return {};
  return fmt::format(
      "of {} a multiprocessor holds {:.0f}% of its warps at once, limited by {} ({} registers a "
      "thread, {} bytes of shared memory a block): little is in flight while memory answers",
      kernel.name, 100 * kernel.occupancy, kernel.limiter, kernel.registers, kernel.shared_bytes);
}

std::string NarrowLoads(const KernelRecord& kernel) {
  if (kernel.widest_load_bytes == 0 || kernel.widest_load_bytes >= kWideLoadBytes ||
      Has(kernel, "async_copy"))
    return {};
  return fmt::format(
      "{} loads {} byte{} a thread and instruction at most: loads of {} bytes ask for the same in "
      "fewer requests",
      kernel.name, kernel.widest_load_bytes, kernel.widest_load_bytes == 1 ? "" : "s",
      kWideLoadBytes);
}

std::string EmptyTail(const KernelRecord& kernel) {
  const double tail = kernel.waves - std::floor(kernel.waves);
  if (!IsLaunched(kernel) || kernel.waves <= 1 || kernel.waves >= kFewWaves || tail == 0 ||
      tail > kEmptyTail)
    return {};
  return fmt::format("{} takes {:.2f} waves: the last one fills {:.0f}% of the GPU", kernel.name,
                     kernel.waves, 100 * tail);
}

std::string ManyLaunches(const Verdict& verdict) {
  int launches = 0;
  for (const KernelRecord& kernel : verdict.kernels) launches += kernel.launches;
  if (launches < 2 || !verdict.roofline || verdict.roofline->regime != "overhead") return {};
  return fmt::format("{} launches a call, where one takes {:.1f} us: fuse them", launches,
                     verdict.roofline->empty_call_ns / 1e3);
}

// Several of one name are variants, of which nobody knows which one runs.
bool IsOneOfSeveral(const Verdict& verdict, const KernelRecord& kernel) {
  return !IsLaunched(kernel) &&
         std::count_if(verdict.kernels.begin(), verdict.kernels.end(),
                       [&](const auto& other) { return other.name == kernel.name; }) > 1;
}

}  // namespace

std::string BottleneckOf(const Verdict& verdict, int multiprocessors) {
  if (std::string busiest = BusiestUnit(verdict); !busiest.empty()) return busiest;
  if (verdict.roofline && verdict.roofline->percent_of_peak >= kNearPeakPercent) return {};
  const bool overhead = verdict.roofline && verdict.roofline->regime == "overhead";
  const bool memory = verdict.roofline && verdict.roofline->regime == "memory";
  const auto first = [&](auto finding) {
    for (const KernelRecord& kernel : verdict.kernels) {
      if (IsOneOfSeveral(verdict, kernel)) continue;
      if (std::string found = finding(kernel); !found.empty()) return found;
    }
    return std::string();
  };
  std::string found = ManyLaunches(verdict);
  if (found.empty()) found = first(Spills);
  if (found.empty() && !overhead) found = FewBlocks(verdict, multiprocessors);
  if (found.empty()) found = NoMatrixUnits(verdict);
  if (found.empty()) found = WhatWarpsAwait(verdict);
  if (found.empty() && !overhead) found = first(LowOccupancy);
  if (found.empty() && memory) found = first(NarrowLoads);
  if (found.empty() && !overhead) found = first(EmptyTail);
  return found;
}

}  // namespace assay
