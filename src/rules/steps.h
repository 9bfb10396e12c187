// Compares calls in a row with calls one at a time (steps). In a timed block every slot is filled
// before the clock starts, so a candidate could compute all calls of the block in its first one and
// do shared work (reading weights) once. In a step only one slot holds new values, and nothing can
// be done ahead. An honest kernel is about as fast in steps as in a row, or slower by as much as
// the baseline is. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace assay {

// The shortest of a few steps [ns]; 0: there is none. Steps that waited for a core do not count: on
// a machine with no core to spare they may take a thousand times longer.
class ShortestStep {
 public:
  void Add(double time_ns, bool disturbed) {
    if (!disturbed && (time_ns_ == 0 || time_ns < time_ns_)) time_ns_ = time_ns;
  }
  double time_ns() const { return time_ns_; }

 private:
  double time_ns_ = 0;
};

// Times of one call in one pair [ns].
struct StepTimes {
  double reference_row_ns = 0, candidate_row_ns = 0;    // in a row, median over blocks
  double reference_step_ns = 0, candidate_step_ns = 0;  // alone, the shortest of a few
};

// A step may take this many times as long as a call in a row. The shortest of a few honest steps
// takes about as long as the median call in a row; a batch that saves a third gives 1.4
// (steps_test).
inline constexpr double kStepRatioMax = 1.25;
// A step may in any case take longer by the cost of waking [ns]. Native kernel: cold caches.
// Interpreter: cold caches (56 us, bench/results/cpu-2core/exploits_first_run.jsonl, class 50), or
// a pool of threads that fell asleep.
inline constexpr double kStepWakeNs = 30e3, kStepSlowWakeNs = 200e3;

// Returns true if this pair shows work done ahead of its turn. `slower_anyway`: the factor by which
// the baseline's steps are slower than its calls in a row.
bool WorksAhead(const StepTimes& pair, double wake_ns, double slower_anyway = 1);

// Describes work done ahead if more than half of the pairs, and at least two, show it; otherwise
// nullopt.
std::optional<std::string> WorkedAhead(std::span<const StepTimes> pairs, double wake_ns);

// A candidate whose calls in a row are some microseconds shorter may keep work from call to call,
// or be slow to wake; the times cannot tell which. Returns a description, `seen`, if in more than
// half of the pairs, and at least two, a call alone takes over kStepRatioMax times as long as in a
// row, and either longer by over `allowed_ns` plus the baseline's difference, or too long for a
// gain of `gain_needed`. Otherwise nullopt.
struct GainInARow {
  std::string seen;
  double alone = 0;  // gain of calls alone, median over the pairs
};
std::optional<GainInARow> FasterInARow(std::span<const StepTimes> pairs, double allowed_ns,
                                       double gain_needed);
// Allowances: on a device; on a processor for one thread, where honest calls differed by 13 us at
// most (bench/results/cpu-2core/calls_alone.jsonl); and for several, which may sleep, not measured.
inline constexpr double kAloneOnDeviceNs = 30e3;
inline constexpr double kAloneNs = 15e3, kAloneThreadsNs = 50e3;

}  // namespace assay
