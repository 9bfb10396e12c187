#include "regions.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "wire/launches.h"

namespace assay::native {
namespace {

// An access that runs off a region by up to this much faults instead of reaching the next mapping.
constexpr uint64_t kGuardBytes = uint64_t{1} << 20;
// As far past an output the judge looks for changed bytes: there they are named, and an access is
// no fault.
constexpr uint64_t kComparedGuardBytes = 1024;
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kRegionBytesMax = uint64_t{1} << 46;

uint64_t RoundUpToPages(uint64_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// What a region must hold at least: the host reads and writes fixed structs in these.
uint64_t BytesMin(wire::Region region) {
  switch (region) {
    case wire::Region::kControl:
      return sizeof(wire::Control);
    case wire::Region::kReport:
      return sizeof(wire::Report);
    case wire::Region::kPlan:
      return sizeof(wire::Plan);
    case wire::Region::kLaunches:
      return sizeof(wire::Launches);
    default:
      return 1;
  }
}

bool MapRegion(Mapping& mapping, wire::Region region, uint64_t size_bytes, bool writable, int fd) {
  if (size_bytes < BytesMin(region) || size_bytes > kRegionBytesMax ||
      (region == wire::Region::kReport && !writable)) {
    errno = EINVAL;
    return false;
  }
  // A mapping longer than its file would raise SIGBUS on the first touch past its end.
  struct stat status;
  if (fstat(fd, &status) != 0) return false;
  if (status.st_size < 0 || static_cast<uint64_t>(status.st_size) < size_bytes) {
    errno = EINVAL;
    return false;
  }
  const uint64_t rounded = RoundUpToPages(size_bytes);
  void* reserved = mmap(nullptr, rounded + 2 * kGuardBytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return false;
  unsigned char* data = static_cast<unsigned char*>(reserved) + kGuardBytes;
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  if (mmap(data, size_bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
    const int error = errno;
    munmap(reserved, rounded + 2 * kGuardBytes);
    errno = error;
    return false;
  }
  mapping = {data, size_bytes, writable};
  return true;
}

}  // namespace

wire::Region RegionOf(const wire::ArgumentSpec& argument, const Regions& regions) {
  switch (argument.role) {
    case wire::Role::kInput: {
      const bool apart =
          argument.kind != wire::Kind::kTensor && regions[wire::Region::kInputs].on_device;
      return apart ? wire::Region::kNumbers : wire::Region::kInputs;
    }
    case wire::Role::kParameter:
      return wire::Region::kWeights;
    case wire::Role::kOutput:
      return wire::Region::kOutputs;
  }
  return wire::Region{0};
}

uint64_t StrideOf(const wire::Plan& plan, wire::Role role) {
  switch (role) {
    case wire::Role::kInput:
      return plan.input_stride;
    case wire::Role::kParameter:
      return plan.weights_stride;
    case wire::Role::kOutput:
      return plan.output_stride;
  }
  return 0;
}

unsigned char* AddressOf(const wire::ArgumentSpec& argument, const wire::Plan& plan,
                         const Regions& regions, uint32_t slot) {
  const wire::ArgumentSpec& place = wire::PlaceOf(plan, argument);
  const uint64_t stride = StrideOf(plan, place.role);
  return regions[RegionOf(place, regions)].data + slot * stride + place.offset;
}

bool MayLieOnDevice(uint64_t region) {
  return region == static_cast<uint64_t>(wire::Region::kInputs) ||
         region == static_cast<uint64_t>(wire::Region::kOutputs) ||
         region == static_cast<uint64_t>(wire::Region::kWeights);
}

bool CloseUnusedSlots(const wire::Plan& plan, const Regions& regions) {
  const Mapping& outputs = regions[wire::Region::kOutputs];
  if (outputs.data == nullptr || outputs.on_device) return true;
  uint64_t end = 0;  // of the last slot's tensors and of the guard that the judge compares
  for (uint32_t i = 0; i < plan.argument_count && plan.slot_count > 0; ++i)
    if (const wire::ArgumentSpec& argument = plan.arguments[i];
        argument.role == wire::Role::kOutput)
      end = std::max(end, (plan.slot_count - 1) * plan.output_stride + argument.offset +
                              argument.size_bytes + kComparedGuardBytes);
  const uint64_t all = RoundUpToPages(outputs.size_bytes);
  const uint64_t open = std::min(RoundUpToPages(end), all);
  return open == all || mprotect(outputs.data + open, all - open, PROT_NONE) == 0;
}

bool OpenOutputs(const Regions& regions) {
  const Mapping& outputs = regions[wire::Region::kOutputs];
  return outputs.data == nullptr || outputs.on_device ||
         mprotect(outputs.data, RoundUpToPages(outputs.size_bytes), PROT_READ | PROT_WRITE) == 0;
}

bool Attach(Regions& regions, const wire::Frame& frame, int fd) {
  const uint64_t region = frame.args[0];
  bool mapped = false;
  if (fd < 0 || region == 0 || region >= wire::kRegionCount || frame.args[2] > 1)
    errno = EINVAL;
  else
    mapped = MapRegion(regions.of[region], static_cast<wire::Region>(region), frame.args[1],
                       frame.args[2] == 1, fd);
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return mapped;
}

}  // namespace assay::native
