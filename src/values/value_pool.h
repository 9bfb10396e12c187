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

// Master slots filled with ordinary draws, in batches that share one version of the weights. A
// fresh process has seen none of them; within a process each is shown once.
class ValuePool {
 public:
  // Returns how many master slots, from `first` on, values may take. At least 2 must exist.
  static uint32_t CapacityFor(const Oracle& oracle, uint32_t first);
  // Uses the master slots [first, first + capacity). `probes`: unusual draws that masters of their
  // own hold; each batch has the version of the weights of one of them.
  ValuePool(Oracle& oracle, uint32_t first, uint32_t capacity, uint64_t seed,
            std::vector<Draw> probes);

  struct Values {
    std::span<const uint32_t> masters;
    const Draw* probe;  // one that this process has not seen, or nullptr; valid as long as the pool
  };

  // Begins a fresh process, which has seen no value.
  void BeginProcess();
  // Returns `count` masters that this process has not seen, in random order, and sets their version
  // of the weights. Draws new values if none are left. Needs count <= capacity().
  HostResult<Values> Take(uint32_t count);
  // Marks a probe that Take() returned as seen by the process.
  void MarkShown(const Draw* probe);
  // Returns the expected time of drawing for the next Take(count) [ns]; 0 if the values exist.
  double CostNs(uint32_t count);
  // Returns the mean time of drawing one value so far [ns].
  double CostOfOneNs() const;
  uint32_t capacity() const { return batches_.batch_max(); }

 private:
  HostResult<void> Refill(ValueBatch& batch);

  Oracle& oracle_;
  std::mt19937_64 random_;
  std::vector<Draw> probes_;
  std::vector<bool> probes_seen_;  // by the present process
  std::vector<size_t> deck_;       // probes that batches drawn next belong to
  ValueBatches batches_;
  int64_t drawn_ = 0, drawing_ns_ = 0;  // so far
};

}  // namespace assay
