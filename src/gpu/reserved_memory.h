// Memory of a GPU that a judge keeps for one problem. The judges of a user reserve it one after the
// other, each before it takes any, so that what one counts on is not given to another.
//
// Theory of operation: a file of the GPU below the state folder has an entry for each that waits or
// holds. An entry counts while its process holds a lock on the entry's byte, which goes with the
// process, however it ends. Entries are read and written under a lock of their own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/stop_token.h"
#include "base/unique_fd.h"

namespace assay {

struct MemoryOfGpu {
  std::filesystem::path folder;          // of the file
  std::string uuid;                      // of the GPU
  uint64_t total_bytes = 0;              // of the GPU
  std::function<uint64_t()> free_bytes;  // now
};

struct MemoryWish {
  uint64_t least_bytes = 0;
  // Judges that share the GPU, this one included: each has at least its part of what may be used.
  // One alone has at least an eighth, and as much more as is free.
  int sharers = 1;
  // False: it holds memory already, and others may wait for that. It is served at once or refused.
  bool waits = true;
  // Called while it waits, first at once and then each minute.
  std::function<void(uint64_t bytes)> on_wait = [](uint64_t) {};
};

// Not safe for several threads. Objects of one process count as those of several do.
class ReservedMemory {
 public:
  ReservedMemory() = default;  // of nothing
  ReservedMemory(ReservedMemory&& other) noexcept { *this = std::move(other); }
  ReservedMemory& operator=(ReservedMemory&& other) noexcept;
  ~ReservedMemory() { GiveBack(); }

  // Waits until the memory is there, and all that asked before are served. What programs other than
  // judges hold cannot be reserved. If the file cannot be written, nobody waits: the GPU's free
  // memory is the limit, and this judge's part of the whole. Errors: kUnjudged with kTooLarge where
  // the memory does not suffice although no judge holds any; kInterrupted; kEnvironment after an
  // hour in which nothing changed.
  static Result<ReservedMemory> Reserve(const MemoryOfGpu& gpu, const MemoryWish& wish,
                                        StopToken stop);

  uint64_t bytes() const { return bytes_; }
  // Gives back all but so many.
  void Shrink(uint64_t bytes);
  // True if another judge waits for memory.
  bool IsWanted() const;

 private:
  Result<void> Wait(const MemoryOfGpu& gpu, const MemoryWish& wish, StopToken stop);
  void GiveBack();

  UniqueFd file_;
  int place_ = 0;  // of its entry
  uint64_t bytes_ = 0;
};

}  // namespace assay
