// What the candidates of a batch were compiled to for a device, disassembled beside what comes
// before anything is timed.
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
  // Begins on a device; `gpu` null: there is nothing to list. The candidates must stay where they
  // are, and their artifacts until they were listed.
  KernelListings(std::vector<BuiltCandidate>& candidates, const Gpu* gpu, StopToken stop);
  // Waits for all: nothing runs beside a measurement.
  void Await() const;
  // The records of one candidate's kernels, for which its listing is waited for.
  Result<void> AddTo(size_t index, Verdict* verdict);

 private:
  using Listings = SideBySide<std::string, Result<std::map<std::string, InstructionMix>>>;

  std::vector<BuiltCandidate>& candidates_;
  const Gpu* gpu_;
  std::unique_ptr<Listings> listings_;
};

}  // namespace assay
