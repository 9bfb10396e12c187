// The shared regions as mapped into this process. A mapping stays for good: a candidate may keep
// pointers into it, and no old pointer may come to point at something else.
#pragma once

#include <stdint.h>

#include "wire/types.h"

namespace assay::native {

struct Mapping {
  unsigned char* data;  // null: not attached
  uint64_t size_bytes;
  bool writable;
  bool on_device = false;  // `data` is then a device address: nothing here may read it
};

struct Regions {
  Mapping of[wire::kRegionCount];

  const Mapping& operator[](wire::Region region) const { return of[static_cast<uint32_t>(region)]; }
};

// Returns the region of an argument. On a device numbers have their own region, as this process
// cannot read the device's memory.
wire::Region RegionOf(const wire::ArgumentSpec& argument, const Regions& regions);

// Returns the bytes from one slot's tensors of this role to the next's.
uint64_t StrideOf(const wire::Plan& plan, wire::Role role);

// Returns its address in a slot, for a changed input that of its twin (wire::PlaceOf); in a region
// on a device, a device address.
unsigned char* AddressOf(const wire::ArgumentSpec& argument, const wire::Plan& plan,
                         const Regions& regions, uint32_t slot);

// The memory of a region, args[3] of kAttach.
enum class Memory : uint64_t { kHost = 0, kDevice = 1 };

// Returns true if a region of this number may be device memory.
bool MayLieOnDevice(uint64_t region);

// CloseUnusedSlots takes all access to the outputs' memory behind the plan's slots away, in whole
// pages: the region may hold far more slots, and an access far past a small output then faults.
// OpenOutputs gives it back. Both return false (with errno) if the system refuses.
bool CloseUnusedSlots(const wire::Plan& plan, const Regions& regions);
bool OpenOutputs(const Regions& regions);

// Maps `fd` shared, between two guards that no access survives, and closes it. Pages exist only
// once touched: a region may be far larger than its used part. Replaces an earlier mapping of the
// same region in `regions`, which stays mapped. Returns false (with errno) if the frame's values
// make no sense or the system refuses.
bool Attach(Regions& regions, const wire::Frame& frame, int fd);

}  // namespace assay::native
