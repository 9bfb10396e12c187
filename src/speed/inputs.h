// The inputs of timed calls, with their weights. Each side of a pair gets values of its own. The
// candidate's are in no slot before its own block, so nothing can be worked on ahead; the opponent
// gets values that the candidate has had. pool_inputs.h fills live slots from the pool of values;
// tests stand in for it.
#pragma once

#include <cstdint>
#include <vector>

#include "hosts/host.h"
#include "speed/block_length.h"
#include "speed/side.h"
#include "values/value_pool.h"

namespace assay {

// No host may run in any function. Trouble is the oracle's.
class Inputs {
 public:
  virtual ~Inputs() = default;

  virtual BlockLimits Limits() const = 0;
  // Sets how many slots hosts prepare when they next enter blocks.
  virtual void Prepare(uint32_t slots) = 0;
  // Fills the first `slots` slots with values for a side. One may hold an unusual draw: in a block
  // of several calls always, else now and then.
  virtual HostResult<FilledSlots> Fill(ValuesFor side, uint32_t slots, uint32_t calls) = 0;
  // Returns the masters of as many values for a side; FillSlot puts one of them into a slot.
  virtual HostResult<std::vector<uint32_t>> Take(ValuesFor side, uint32_t count) = 0;
  virtual void FillSlot(uint32_t slot, uint32_t master) = 0;
  // Returns the expected time of drawing for so many new values [ns].
  virtual double CostNs(uint32_t count) = 0;

  // Returns true if the device did other work since the last call of this.
  virtual bool TakeBusy() = 0;
};

}  // namespace assay
