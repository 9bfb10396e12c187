// Calls in a row against calls one at a time. In a timed block every slot is filled before the
// clock starts, so a candidate could compute all calls of the block in its first one, with work
// that they share (weights read once) done once. In a step only one slot holds new values, and
// nothing can be done ahead. An honest kernel is about as fast in steps as in a row, or slower by
// what the baseline's steps are slower, too. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace assay {

// The shortest of a few steps [ns]; 0: there is none. One that waited for a core tells nothing of
// the kernel: on a machine with no core to spare it is a thousand times longer.
class ShortestStep {
 public:
  void Add(double time_ns, bool disturbed) {
    if (!disturbed && (time_ns_ == 0 || time_ns < time_ns_)) time_ns_ = time_ns;
  }
  double time_ns() const { return time_ns_; }

 private:
  double time_ns_ = 0;
};

// Of one pair; times of one call [ns].
struct StepTimes {
  double reference_row_ns = 0, candidate_row_ns = 0;    // in a row, median over blocks
  double reference_step_ns = 0, candidate_step_ns = 0;  // alone, the shortest of a few
  // Alone and with weights that were changed just before, the shortest of a few; 0: not run.
  double reference_changed_ns = 0, candidate_changed_ns = 0;
};

// A step may take this many times a call in a row: the shortest of a few steps of an honest kernel
// is about as long as the median call in a row; a batch that saves a third shows 1.4
// (steps_test)...
inline constexpr double kStepRatioMax = 1.25;
// ...and in any case as much longer as waking takes [ns]: a native kernel's caches; an
// interpreter's caches, of which an honest candidate showed 56 us
// (bench/results/cpu-2core/exploits_first_run.jsonl, class 50), or a pool of threads that
// fell asleep.
inline constexpr double kStepWakeNs = 30e3, kStepSlowWakeNs = 200e3;
// On a device, between calls alone of which one has changed weights: what an interpreter costs is
// in both, and the device's caches are empty in both.
inline constexpr double kKeptOnDeviceNs = 20e3;

// Whether this pair shows work done ahead of its turn. `slower_anyway`: how many times longer steps
// take for both sides, by the baseline.
bool WorksAhead(const StepTimes& pair, double wake_ns, double slower_anyway = 1);

// What was seen, where more than half of the pairs, and at least two, show it; else nullopt.
std::optional<std::string> WorkedAhead(std::span<const StepTimes> pairs, double wake_ns);

// On a device a candidate whose call saves some tens of microseconds when it comes in a row may
// keep work from call to call, or be slow to wake: which of them cannot be told. `seen` where its
// gain in a row is over kStepRatioMax times its gain alone, and a call alone takes longer by what
// the baseline's does and kAloneOnDeviceNs, in more than half of the pairs; else nullopt.
inline constexpr double kAloneOnDeviceNs = 30e3;
struct GainInARow {
  std::string seen;
  double alone = 0;  // the gain of calls alone, the median of the pairs
};
std::optional<GainInARow> FasterInARow(std::span<const StepTimes> pairs);

// Whether calls that meet new weights take longer than those that do not, by the same limits, in
// more than half of the pairs: work on weights is done once and kept. What was seen, else nullopt.
// `beside_baseline`: what new weights cost the baseline's calls is allowed besides.
std::optional<std::string> KeptWork(std::span<const StepTimes> pairs, double wake_ns,
                                    bool beside_baseline = false);

}  // namespace assay
