// Results that a python host left where its candidate's forward put them (wire::Results::kLeft), in
// the host's own memory: the judge reads them there once the host is stopped. Nothing of a copy is
// in anybody's time, and no candidate can gain by leaving it out.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/types.h"

namespace assay {

// Whether this process may read that one's memory, as a debugger may.
bool MayReadMemory(pid_t pid);

// Of one block. The host claims where its results lie: what it says is copied once, and a place
// that cannot be read gives no result.
class LeftResults {
 public:
  LeftResults(const wire::Report& report, const wire::Plan& plan, std::span<const uint32_t> slots);

  // Two of them share memory: the candidate uses it again from call to call, and what an earlier
  // call gave is gone.
  bool Overlap() const;
  // Reads a few lines of them as the block ends; and whether these are the same now.
  void TakeSample(pid_t pid, uint32_t lines, uint64_t seed);
  bool SampleStillHolds(pid_t pid) const;
  // Copies them into the slots' places in `outputs`; the slots of those that cannot be read.
  std::vector<uint32_t> Fetch(pid_t pid, std::byte* outputs) const;

 private:
  struct Piece {
    uint32_t slot;
    uint64_t address, size_bytes;
    uint64_t place;  // in the outputs
  };
  std::vector<std::byte> ReadSample(pid_t pid) const;

  std::vector<Piece> pieces_;
  std::vector<uint32_t> lost_;  // slots of calls that gave nothing
  std::vector<Piece> lines_;
  std::vector<std::byte> sample_;
};

}  // namespace assay
