// The slots that hosts under test see, and the pool of values that fills them.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "pipeline/host.h"
#include "pipeline/oracle.h"
#include "pipeline/shared_region.h"

namespace assay {

// One draw of gate 1.
struct Draw {
  wire::DrawKind kind = wire::DrawKind::kOrdinary;
  uint64_t seed = 0;
  uint32_t master = 0;  // slot that holds it, when kept
  bool dropped = false;
  std::string reason;
};

// Inputs that every host under test maps read-only, and the plan that goes with them. Both sides of
// a pair read the same inputs from the same pages; outputs belong to each side alone.
class LiveSlots {
 public:
  static Result<LiveSlots> Create(const Oracle& oracle);

  const wire::Plan& plan() const { return *plan_.as<wire::Plan>(); }
  const SharedRegion& plan_region() const { return plan_; }
  const SharedRegion& inputs() const { return inputs_; }
  uint32_t capacity() const { return capacity_; }
  uint64_t guard() const { return guard_; }

  // How many slots hosts prepare when they next enter blocks; at most capacity().
  void SetSlotCount(uint32_t count);
  // Copies masters[i] into slot i, for each i, past the caches. No host may run.
  void FillInputs(const Oracle& oracle, std::span<const uint32_t> masters);
  // Copies one master into one slot.
  void FillInput(const Oracle& oracle, uint32_t slot, uint32_t master);
  // Zeroes what was filled since the last time: a process that starts sees no values before its
  // turn. No host may run.
  void Clear();
  // Drops a slot's inputs, or those of several and the weights, from the caches: the side that ran
  // before had read them.
  void FlushInput(uint32_t slot) const;
  void FlushInputs(const Oracle& oracle, std::span<const uint32_t> slots) const;
  // Outputs for one host, poisoned when a block is prepared.
  Result<SharedRegion> CreateOutputs() const;

 private:
  LiveSlots() = default;
  SharedRegion plan_, inputs_;
  uint32_t capacity_ = 0;
  uint32_t filled_ = 0;  // slots that may hold values
  uint64_t guard_ = 0;
};

// Master slots filled with ordinary draws, in batches that share one version of the weights. A
// fresh process has seen none of them; within a process each is shown once.
class ValuePool {
 public:
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
  // The process has seen this probe, which Take() offered.
  void MarkShown(const Draw* probe);
  // What drawing for the next Take(count) is expected to cost [ns]; 0 when the values are at hand.
  double CostNs(uint32_t count) const;
  // What drawing one value takes, by those drawn so far [ns].
  double CostOfOneNs() const;
  uint32_t capacity() const { return capacity_; }

 private:
  struct Batch {
    std::vector<uint32_t> masters;
    uint64_t weights = 0;
    std::optional<size_t> probe;  // whose weights these are
    bool seen = false;            // by the process in hand
  };
  // A batch of this size that the process has not seen and that holds values, or nullptr.
  Batch* Unseen(uint32_t count);
  // One that may be filled anew: an empty one, or the one seen.
  Batch& Reusable(uint32_t count);
  HostResult<void> Refill(Batch& batch);

  Oracle& oracle_;
  uint32_t first_, capacity_;
  std::mt19937_64 random_;
  std::vector<Draw> probes_;
  std::vector<bool> probes_seen_;  // by the process in hand
  std::vector<size_t> deck_;       // probes that batches drawn next belong to
  std::vector<Batch> batches_;
  uint32_t placed_ = 0;                 // masters that belong to batches
  int64_t drawn_ = 0, drawing_ns_ = 0;  // so far
};

}  // namespace assay
