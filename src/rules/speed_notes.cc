#include "rules/speed_notes.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

// The most that leaving out a copy saves, in times of the copy: caches keep what it pushes out
// (bench/copies.py: 0.5 to 1.7).
constexpr double kSavedByCopy = 2;
// A host on a device has its inputs 0.12 to 0.6 ms before the clock (bench/results/NOTES.md).
// Blocks are 1 ms; where memory held their calls the shortest were 0.48, but for an early judge's.
constexpr double kWorkedAheadNs = 4e5;
// Any processor's core reaches these: bytes and operations a nanosecond.
constexpr double kSlowBytesNs = 5, kSlowOperationsNs = 1;
// PyTorch takes about a microsecond to call one operator, and tens for a small model's.
constexpr double kWorthACallNs = 500, kLongCallNs = 1e5;
constexpr double kFarFromBound = 1;  // percent

}  // namespace

bool IsFasterWithoutCopy(double reference_ns, double copy_ns, double candidate_ns,
                         double threshold) {
  return SpeedupBesideCopies(reference_ns, copy_ns, candidate_ns) > threshold;
}

double SpeedupBesideCopies(double reference_ns, double copy_ns, double candidate_ns) {
  return std::max(0.0, (reference_ns - kSavedByCopy * copy_ns) / candidate_ns);
}

std::string NoteOfReusedMemory(double reference_ns, double copy_ns, double candidate_ns,
                               double threshold) {
  if (IsFasterWithoutCopy(reference_ns, copy_ns, candidate_ns, threshold)) return {};
  return fmt::format(
      "it uses the memory of its results again, so that both sides' are copied; it gains no more "
      "than code in Python could by leaving out that copy, {:.0f}% of the reference's time: return "
      "a new tensor from each call, and nobody copies",
      100 * copy_ns / reference_ns);
}

std::string NoteOfCopies(double reference_ns, double copy_ns, double candidate_ns,
                         double threshold) {
  if (IsFasterWithoutCopy(reference_ns, copy_ns, candidate_ns, threshold)) return {};
  return fmt::format(
      "code in Python could leave out the copy of its results, {:.0f}% of the reference's time, "
      "and gain as much by that: read its source",
      100 * copy_ns / reference_ns);
}

std::string NoteOfOwnCopies(double reference_ns, double candidate_ns, double copy_ns,
                            double threshold) {
  const double without_ns = std::max(1.0, candidate_ns - kSavedByCopy * copy_ns);
  if (reference_ns / without_ns < threshold) return {};
  return "slower by the copy of its results, which its opponent does without: it uses their memory "
         "again, and the judge has to copy them in between; return a new tensor from each call";
}

std::string NoteOfShortBlocks(uint32_t calls, double block_ns) {
  if (block_ns >= kWorkedAheadNs) return {};
  return fmt::format(
      "a block of {} is over after {:.2f} ms, in which its code may have its inputs before the "
      "clock, so whether it worked ahead cannot be told: the GPU's memory that is left holds no "
      "more calls' values; end other programs there",
      calls == 1 ? std::string("1 call") : fmt::format("{} calls", calls), block_ns / 1e6);
}

std::string NoteOfBaseline(const Work& work, double bound_ns, double reference_ns) {
  const double slow_core_ns =
      std::max(work.bytes / kSlowBytesNs, work.operations / kSlowOperationsNs);
  if (slow_core_ns < kWorthACallNs && reference_ns < kLongCallNs)
    return "call overhead decides here: the work of a call takes less time than calling does, so "
           "this says little about larger sizes";
  const double percent = 100 * (bound_ns > 0 ? bound_ns : slow_core_ns) / reference_ns;
  if (percent >= kFarFromBound) return {};
  return fmt::format("the baseline reaches {:.2g}% of {}: most of the gain is its own slowness",
                     percent, bound_ns > 0 ? "the bound" : "what a slow core could do");
}

std::string NoteOfCharges(double speedup_without) {
  return fmt::format(
      "slower only by what its host could have done before the clock, which is charged; without "
      "that {:.3g}x",
      speedup_without);
}

}  // namespace assay
