// Results that a python host left where its candidate's forward put them (wire::Results::kLeft): in
// the host's own memory, which the judge reads once the host is stopped, or, on a device, in memory
// that the judge has lent it. Nothing of a copy is in anybody's time, and no candidate can gain by
// leaving it out.
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

// Where the host claims that its results lie, one address for each output of each call: taken once,
// as it says done, since it may say something else a moment later.
std::vector<uint64_t> AddressesOfResults(const wire::Report& report, const wire::Plan& plan,
                                         size_t calls);

// Of one block. A place that cannot be read gives no result.
class LeftResults {
 public:
  struct Piece {
    uint32_t slot;
    uint64_t address, size_bytes;
    uint64_t place;  // in the outputs
  };

  // `addresses`: AddressesOfResults() of as many calls as there are slots.
  LeftResults(std::span<const uint64_t> addresses, const wire::Plan& plan,
              std::span<const uint32_t> slots);

  // Two of them share memory: the candidate uses it again from call to call, and what an earlier
  // call gave is gone.
  bool Overlap() const;
  // On a device: the host has the `size_bytes` bytes at `ours` of the judge's at `theirs`.
  // Addresses become the judge's; false: there are results elsewhere, which are lost.
  bool Translate(uint64_t theirs, uint64_t size_bytes, uint64_t ours);
  const std::vector<Piece>& pieces() const { return pieces_; }
  // Slots of calls that gave nothing.
  const std::vector<uint32_t>& lost() const { return lost_; }

  // Reads a few lines of them as the block ends; and whether these are the same now.
  void TakeSample(pid_t pid, uint32_t lines, uint64_t seed);
  bool SampleStillHolds(pid_t pid) const;
  // Copies them into the slots' places in `outputs`; the slots of those that cannot be read.
  std::vector<uint32_t> Fetch(pid_t pid, std::byte* outputs) const;

 private:
  std::vector<std::byte> ReadSample(pid_t pid) const;

  std::vector<Piece> pieces_;
  std::vector<uint32_t> lost_;
  std::vector<Piece> lines_;
  std::vector<std::byte> sample_;
};

// Device memory that lets a host leave the results of so many slots: what PyTorch's allocator
// takes for them, and room for what forward makes on its way, less where `values_bytes`, which a
// problem's values may take in all, are few [bytes].
uint64_t LeftResultsBytes(const wire::Plan& plan, uint32_t slots, uint64_t values_bytes);

}  // namespace assay
