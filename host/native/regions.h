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
  bool on_device = false;  // `data` is then an address of the device's: nothing here may read it
};

struct Regions {
  Mapping of[wire::kRegionCount];

  const Mapping& operator[](wire::Region region) const { return of[static_cast<uint32_t>(region)]; }
};

// The region that an argument lies in: this process cannot read a device's memory, so numbers come
// beside the inputs there.
wire::Region RegionOf(const wire::ArgumentSpec& argument, const Regions& regions);

// Where it lies in a slot; in a region on a device, an address of the device's.
unsigned char* AddressOf(const wire::ArgumentSpec& argument, const wire::Plan& plan,
                         const Regions& regions, uint32_t slot);

// Where a frame wants the region to lie: args[3] of kAttach.
enum class Memory : uint64_t { kHost = 0, kDevice = 1 };

// Whether a region of this number may be device memory.
bool MayLieOnDevice(uint64_t region);

// Maps `fd` shared, between two guards that no access survives, and closes it. Pages come when they
// are touched: a region may be far larger than what is used of it.
// Replaces an earlier mapping of the same region in `regions`, which stays where it is. False (with
// errno) when the frame's values make no sense or the system refuses.
bool Attach(Regions& regions, const wire::Frame& frame, int fd);

}  // namespace assay::native
