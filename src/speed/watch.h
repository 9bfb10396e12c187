// Watches where a candidate's time goes, by library: blocks of one pair that do not count.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "model/verdict.h"
#include "speed/block_length.h"
#include "speed/host_side.h"
#include "speed/library_kernels.h"

namespace assay {

struct WatchTerms {
  LiveSlots& live;
  const OwnKernels* own_kernels = nullptr;  // on a device; null: it is not looked at there
  BlockLength length;
  double call_ns = 0;  // of the candidate
};

// The candidate's time by library, or the reason why it was not seen.
struct WatchedTime {
  std::optional<LibraryTime> libraries;
  std::string unseen;
};

// Watches the candidate, on values that it has had. Sets what was seen in `*watched`. On a device
// its host must not be used any more, and its trouble is the reason why nothing was seen. Errors:
// the host's trouble.
HostResult<void> Watch(const WatchTerms& terms, HostSide& candidate, std::mt19937_64& random,
                       WatchedTime* watched);

}  // namespace assay
