// What a device candidate is compiled to: a header, the kernels' names in the order in which the
// builder was asked for them, and a cubin. It was made beside a stranger's source, so whoever reads
// one checks every field.
#pragma once

#include <stdint.h>

namespace assay::wire {

inline constexpr char kDeviceImageMagic[8] = {'A', 'S', 'Y', 'C', 'U', 'B', '0', '1'};
inline constexpr uint32_t kDeviceKernelsMax = 64;
inline constexpr uint32_t kKernelNameBytes = 1024;

struct DeviceImageHeader {
  char magic[8];
  uint32_t kernel_count;  // 1 to kDeviceKernelsMax
  uint32_t reserved;
  uint64_t cubin_bytes;  // up to the end of the image
};

struct DeviceImageKernel {
  char name[kKernelNameBytes];  // as the cubin has it, NUL-terminated
};

}  // namespace assay::wire
