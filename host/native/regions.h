// The shared regions as mapped into this process. A mapping stays for good: a candidate may keep
// pointers into it, and a stale one must never come to point at something else.
#pragma once

#include <stdint.h>

#include "wire/types.h"

namespace assay::native {

struct Mapping {
  unsigned char* data;  // null: not attached
  uint64_t size_bytes;
  bool writable;
};

struct Regions {
  Mapping of[wire::kRegionCount];

  const Mapping& operator[](wire::Region region) const { return of[static_cast<uint32_t>(region)]; }
};

// Maps `fd` shared, between two guards that no access survives, and closes it. Pages come when they
// are touched: a region may be far larger than what is used of it.
// Replaces an earlier mapping of the same region in `regions`, which stays where it is. False (with
// errno) when the frame's values make no sense or the system refuses.
bool Attach(Regions& regions, const wire::Frame& frame, int fd);

}  // namespace assay::native
