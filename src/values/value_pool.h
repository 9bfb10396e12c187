// Values for timed blocks, in master slots: drawn as they are needed, shown to a process once.
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
  // How many master slots, from `first` on, values may take; at least 2 must be there.
  static uint32_t CapacityFor(const Oracle& oracle, uint32_t first);
  // Uses the master slots [first, first + capacity). `probes`: unusual draws that are kept in
  // masters of their own; a batch has the version of the weights of one of them.
  ValuePool(Oracle& oracle, uint32_t first, uint32_t capacity, uint64_t seed,
            std::vector<Draw> probes);

  struct Values {
    std::span<const uint32_t> masters;
    const Draw* probe;  // one that this process has not seen, or nullptr; valid as the pool is
  };

  // A fresh process comes: every value is new to it.
  void BeginProcess();
  // `count` masters that this process has not seen, in random order, and puts their version of the
  // weights in place; draws new values where none are left. count <= capacity.
  HostResult<Values> Take(uint32_t count);
  // Draws a batch of `count` values that no Take() has to draw then.
  HostResult<void> DrawAhead(uint32_t count);
  // The batches that were drawn, by their numbers of values.
  std::vector<uint32_t> batch_sizes() const { return batches_.Sizes(); }
  // The process has seen this probe, which Take() offered.
  void MarkShown(const Draw* probe);
  // What drawing for the next Take(count) is expected to cost [ns]; 0 when the values are at hand.
  double CostNs(uint32_t count);
  // What drawing one value takes, by those drawn so far [ns].
  double CostOfOneNs() const;
  uint32_t capacity() const { return batches_.batch_max(); }

 private:
  // Valid until the next batch is drawn.
  HostResult<ValueBatch*> DrawBatch(uint32_t count);
  HostResult<void> Refill(ValueBatch& batch);

  Oracle& oracle_;
  std::mt19937_64 random_;
  std::vector<Draw> probes_;
  std::vector<bool> probes_seen_;  // by the process in hand
  std::vector<size_t> deck_;       // probes that batches drawn next belong to
  ValueBatches batches_;
  int64_t drawn_ = 0, drawing_ns_ = 0;  // so far
};

}  // namespace assay
