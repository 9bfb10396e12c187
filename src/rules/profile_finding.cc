#include "rules/profile_finding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace assay {
namespace {

// Below it in all units a kernel is bound by latency: Nsight Compute's own rule ("Speed of Light").
constexpr double kBusyPercent = 60;
// Half of each sector: with all of them used, the same data takes half of the traffic or less.
constexpr double kSectorsWasted = 50;
// A third of shared memory's cycles: a padded or swizzled layout gives them back.
constexpr double kConflictsMatter = 33;
// One and a half times what must be moved: less may be halos, or lines at the edges of rows.
constexpr double kMovesTooMuch = 1.5;
// With less, the call has other kernels that matter, too.
constexpr double kWholeCall = 0.95;

// What warps wait for, and what helps, by Nsight Compute's names (its guide, "Warp Scheduler
// States").
struct Stall {
  std::string_view reason;
  const char* words;
  const char* remedy;
};
constexpr Stall kStalls[] = {
    {"long_scoreboard", "global memory", "more bytes in flight"},
    {"lg_throttle", "a place in the queue to global memory", "wider loads, and fewer of them"},
    {"short_scoreboard", "shared memory or special functions",
     "fewer of these, or more work between"},
    {"mio_throttle", "a place in the queue to shared memory", "wider accesses, and fewer of them"},
    {"barrier", "each other at a barrier", "fewer barriers, or smaller blocks"},
    {"gmma", "matrix products", "more of them in flight"},
    {"math_pipe_throttle", "an arithmetic unit", "fewer or cheaper operations"},
    {"wait", "their own last instruction", "more independent work, or more warps"},
    {"no_instruction", "instructions to be fetched", "shorter code, or less unrolling"},
    {"imc_miss", "constants to be fetched", "fewer different constants"},
    {"membar", "a memory fence", "fewer fences"},
    {"branch_resolving", "a branch to be decided", "fewer branches"},
    {"tex_throttle", "a place in the queue to textures", "wider loads, and fewer of them"},
    {"drain", "stores to be done as they end", "stores that are wide and coalesced"},
    {"sleeping", "their own sleep", "no sleeping"},
};

const KernelProfile* Heaviest(const Verdict& verdict) {
  if (!verdict.profile || verdict.profile->kernels.empty()) return nullptr;
  return &verdict.profile->kernels.front();
}

bool IsAtLeast(const std::optional<double>& value, double least) {
  return value && *value >= least;
}
bool IsBelow(const std::optional<double>& value, double most) { return value && *value < most; }

// "softmax (62% of the cycles)": its share counts where it is not alone.
std::string Subject(const KernelProfile& kernel) {
  if (kernel.cycles_share >= kWholeCall) return kernel.name;
  return fmt::format("{} ({:.0f}% of the call's cycles)", kernel.name, 100 * kernel.cycles_share);
}

std::pair<std::string, double> LargestStall(const KernelProfile& kernel) {
  std::pair<std::string, double> largest;
  for (const auto& [reason, percent] : kernel.stalls)
    if (percent > largest.second) largest = {reason, percent};
  return largest;
}

bool AwaitsGlobalMemory(const KernelProfile& kernel) {
  const std::string reason = LargestStall(kernel).first;
  return reason == "long_scoreboard" || reason == "lg_throttle" || reason == "drain";
}
bool AwaitsSharedMemory(const KernelProfile& kernel) {
  const std::string reason = LargestStall(kernel).first;
  return reason == "short_scoreboard" || reason == "mio_throttle";
}

// Warps wait for loads and for room in the queue; stores that nobody waits for cost what they take
// of a busy memory.
std::string Uncoalesced(const KernelProfile& kernel) {
  const bool busy = IsAtLeast(kernel.memory_percent, kBusyPercent);
  const std::string stall = LargestStall(kernel).first;
  const auto told = [&](const std::optional<double>& used, bool matters, const char* accesses) {
    if (!matters || !IsBelow(used, kSectorsWasted)) return std::string();
    return fmt::format("uncoalesced {}: {} uses {:.0f}% of each 32-byte sector that it asks for",
                       accesses, Subject(kernel), *used);
  };
  const std::string loads =
      told(kernel.load_used_percent, busy || AwaitsGlobalMemory(kernel), "loads");
  if (!loads.empty()) return loads;
  return told(kernel.store_used_percent, busy || stall == "lg_throttle" || stall == "drain",
              "stores");
}

std::string BankConflicts(const KernelProfile& kernel) {
  const bool matters = IsAtLeast(kernel.memory_percent, kBusyPercent) || AwaitsSharedMemory(kernel);
  if (!IsAtLeast(kernel.conflict_percent, kConflictsMatter) || !matters) return {};
  return fmt::format("bank conflicts: they take {:.0f}% of the cycles of shared memory in {}",
                     *kernel.conflict_percent, Subject(kernel));
}

// How many times what must be moved goes to and from DRAM, over all kernels; 0: not known.
double TrafficRatio(const Verdict& verdict) {
  double bytes = 0;
  for (const KernelProfile& kernel : verdict.profile->kernels)
    bytes += kernel.dram_bytes.value_or(0);
  return verdict.work && verdict.work->bytes > 0 ? bytes / verdict.work->bytes : 0;
}

std::string Bound(const Verdict& verdict, const KernelProfile& kernel) {
  const std::string subject = Subject(kernel);
  // Of two units that are busy the busier one is named.
  const double dram = kernel.dram_percent.value_or(0), tensor = kernel.tensor_percent.value_or(0);
  const double memory = kernel.memory_percent.value_or(0), sm = kernel.sm_percent.value_or(0);
  const double most = std::max({dram, tensor, memory, sm});
  if (most < kBusyPercent) return {};
  if (tensor >= kBusyPercent && tensor >= dram)
    return fmt::format("compute-bound: {} keeps the matrix units at {:.0f}% of their peak", subject,
                       tensor);
  if (dram >= kBusyPercent) {
    const double ratio = TrafficRatio(verdict);
    std::string text =
        fmt::format("memory-bound: {} has DRAM at {:.0f}% of its peak", subject, dram);
    if (ratio >= kMovesTooMuch)
      text += fmt::format(", and the call moves {:.1f} times the bytes that it must", ratio);
    return text;
  }
  if (memory >= sm)
    return fmt::format(
        "bound by caches or shared memory: {} has their busiest part at {:.0f}% of its peak, and "
        "DRAM at {:.0f}%",
        subject, memory, dram);
  return fmt::format(
      "compute-bound: {} keeps the multiprocessors' busiest unit at {:.0f}% of its peak, and the "
      "matrix units at {:.0f}%",
      subject, sm, tensor);
}

}  // namespace

std::string BusiestUnit(const Verdict& verdict) {
  const KernelProfile* kernel = Heaviest(verdict);
  if (kernel == nullptr) return {};
  std::string found = Uncoalesced(*kernel);
  if (found.empty()) found = BankConflicts(*kernel);
  if (found.empty()) found = Bound(verdict, *kernel);
  return found;
}

std::string WhatWarpsAwait(const Verdict& verdict) {
  const KernelProfile* kernel = Heaviest(verdict);
  if (kernel == nullptr || kernel->stalls.empty()) return {};
  const auto [reason, percent] = LargestStall(*kernel);
  const auto stall = std::find_if(std::begin(kStalls), std::end(kStalls),
                                  [&](const Stall& known) { return known.reason == reason; });
  std::string text =
      fmt::format("latency: warps of {} wait for {} ({:.0f}% of all waiting)", Subject(*kernel),
                  stall != std::end(kStalls) ? stall->words : reason, percent);
  std::vector<std::string> beside;
  if (kernel->dram_percent)
    beside.push_back(fmt::format("DRAM at {:.0f}% of its peak", *kernel->dram_percent));
  if (kernel->warps_active_percent)
    beside.push_back(fmt::format("{:.0f}% of the warps active", *kernel->warps_active_percent));
  if (!beside.empty()) text += ", with " + beside.front();
  if (beside.size() > 1) text += " and " + beside.back();
  if (stall != std::end(kStalls)) text += fmt::format(": {} would help", stall->remedy);
  return text;
}

}  // namespace assay
