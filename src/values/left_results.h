// Reads results that a python host leaves where its candidate's forward put them
// (wire::Results::kLeft): in the host's own memory, which the judge reads once the host is stopped,
// or, on a device, in memory that the judge lends it. Copies are not timed, so no candidate gains
// by avoiding one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/types.h"

namespace assay {

// Returns true if this process may read the memory of `pid`, as a debugger may.
bool MayReadMemory(pid_t pid);

// Returns the addresses that the host claims for its results, one for each output of each call.
// Read them once, at done: the host can change its claim later.
std::vector<uint64_t> AddressesOfResults(const wire::Report& report, const wire::Plan& plan,
                                         size_t calls);

// The results of one block. An address that cannot be read gives no result.
class LeftResults {
 public:
  struct Piece {
    uint32_t slot;
    uint64_t address, size_bytes;
    uint64_t place;  // offset in the outputs
    std::byte poison = {};
  };

  // `addresses`: AddressesOfResults() of one call for each of `slots`.
  LeftResults(std::span<const uint64_t> addresses, const wire::Plan& plan,
              std::span<const uint32_t> slots);

  // Returns true if two results share memory: the candidate reuses it from call to call, and
  // results of earlier calls are gone.
  bool Overlap() const;
  // On a device: turns the host's addresses into the judge's. The host maps the `size_bytes` bytes
  // at `ours` at `theirs`. Returns false if there are results elsewhere; they are lost.
  bool Translate(uint64_t theirs, uint64_t size_bytes, uint64_t ours);
  const std::vector<Piece>& pieces() const { return pieces_; }
  // Slots of calls without a result.
  const std::vector<uint32_t>& lost() const { return lost_; }

  // TakeSample reads a few lines of the results as the block ends; SampleStillHolds returns true if
  // these are unchanged.
  void TakeSample(pid_t pid, uint32_t lines, uint64_t seed);
  bool SampleStillHolds(pid_t pid) const;
  // Copies the results into their slots in `outputs`. Returns the slots of those that cannot be
  // read.
  std::vector<uint32_t> Fetch(pid_t pid, std::byte* outputs) const;
  // Poisons random lines of each result, `lines` at most, so that a later call that leaves its
  // result there must write it anew. What cannot be written, such as inputs, stays.
  void Poison(pid_t pid, uint32_t lines, uint64_t seed) const;

 private:
  std::vector<std::byte> ReadSample(pid_t pid) const;

  std::vector<Piece> pieces_;
  std::vector<uint32_t> lost_;
  std::vector<Piece> lines_;
  std::vector<std::byte> sample_;
};

// Returns the device memory that a host needs to leave the results of `slots` slots [bytes]: the
// demand of PyTorch's allocator for them, and room for forward's intermediate values. That room is
// smaller if `values_bytes`, the limit of all values of a problem, is small.
uint64_t LeftResultsBytes(const wire::Plan& plan, uint32_t slots, uint64_t values_bytes);

}  // namespace assay
