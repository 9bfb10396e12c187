// Inputs in live slots, from the pool of values.
#pragma once

#include <random>

#include "speed/gate2_terms.h"
#include "speed/inputs.h"

namespace assay {

class PoolInputs : public Inputs {
 public:
  // Both outlive it.
  PoolInputs(const GateValues& values, std::mt19937_64& random)
      : values_(values), random_(random) {}

  BlockLimits Limits() const override;
  void Prepare(uint32_t slots) override;
  HostResult<FilledSlots> Fill(ValuesFor side, uint32_t slots, uint32_t calls) override;
  HostResult<std::vector<uint32_t>> Take(ValuesFor side, uint32_t count) override;
  void FillSlot(uint32_t slot, uint32_t master) override;
  double CostNs(uint32_t count) override { return values_.pool.CostNs(count); }
  bool TakeBusy() override { return values_.live.TakeBusy(); }

 private:
  const GateValues& values_;
  std::mt19937_64& random_;
};

}  // namespace assay
