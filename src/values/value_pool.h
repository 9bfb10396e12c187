// Values for timed blocks, in master slots: drawn when needed, shown to a process once.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "values/draw_kinds.h"
#include "values/oracle.h"
#include "values/value_batches.h"

namespace assay {

// Master slots filled with ordinary draws, some with random signs, each with a version of the
// weights of its own. A fresh process has seen none of them; within a process each is shown once.
// The side of a pair that values are for: the candidate's are new to its process, and so to the
// slots; the opponent's are among those that the candidate has had.
enum class ValuesFor { kCandidate, kOpponent };

class ValuePool {
 public:
  // Returns how many master slots, from `first` on, values may take. At least one must exist.
  static uint32_t CapacityFor(const Oracle& oracle, uint32_t first);
  // Uses the master slots [first, first + capacity). Others may fill them, too: such values count
  // as gone. `probes`: unusual draws, which others keep in their masters or MasterOf() makes anew.
  // `with_signs`: inputs of one sign get random ones in half of the values.
  ValuePool(Oracle& oracle, uint32_t first, uint32_t capacity, uint64_t seed,
            std::vector<Draw> probes, bool with_signs);

  struct Values {
    std::span<const uint32_t> masters;
    const Draw* probe;  // or nullptr; valid as long as the pool
  };

  // Begins a fresh process, which has seen no value.
  void BeginProcess();
  // Returns `count` masters for a side, in random order, and a probe by the same rule. Draws new
  // values if none are left. An opponent's first values are new, and the candidate's process never
  // gets them. Needs count <= capacity().
  HostResult<Values> Take(ValuesFor side, uint32_t count);
  // Returns the master that holds a probe, which may be one of this pool's. A probe that is not
  // kept is made anew.
  HostResult<uint32_t> MasterOf(const Draw& probe);
  // Marks the probe that Take(kCandidate) returned last as seen by the process.
  void MarkShown();
  // Returns the expected time of drawing for the next Take(count) [ns]; 0 if the values exist.
  double CostNs(uint32_t count);
  // Returns the mean time of drawing one value so far [ns].
  double CostOfOneNs() const;
  uint32_t capacity() const { return batches_.batch_max(); }

 private:
  const Draw* ProbeFor(ValuesFor side);
  HostResult<void> Refill(ValueBatch& batch);
  bool Holds(const ValueBatch& batch) const;

  Oracle& oracle_;
  std::mt19937_64 random_;
  std::vector<Draw> probes_;
  bool with_signs_;
  // Probes in the order in which this process sees them, and how many it has seen.
  std::vector<size_t> deck_;
  size_t probes_seen_ = 0;
  ValueBatches batches_;
  int64_t drawn_ = 0, drawing_ns_ = 0;  // so far
};

}  // namespace assay
