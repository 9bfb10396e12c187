// Disassembles the kernels of a batch's candidates for a device, beside other work but never beside
// a measurement.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "builders/build_candidate.h"
#include "machine/side_by_side.h"
#include "model/verdict.h"

namespace assay {

class KernelListings {
 public:
  // Begins all listings; `gpu` null: there is nothing to list. The candidates must outlive this
  // object, and their artifacts must not change until they are listed.
  KernelListings(std::vector<BuiltCandidate>& candidates, const Gpu* gpu, StopToken stop);
  // Waits for all: nothing may run beside a measurement.
  void Await() const;
  // Waits for one candidate's listing, and adds its kernels' records to the verdict.
  Result<void> AddTo(size_t index, Verdict* verdict);

 private:
  using Listings = SideBySide<std::string, Result<std::map<std::string, InstructionMix>>>;

  std::vector<BuiltCandidate>& candidates_;
  const Gpu* gpu_;
  std::unique_ptr<Listings> listings_;
};

}  // namespace assay
