// A device image, the compiled form of a device candidate: a header, the kernels' names in the
// order in which the builder was asked for them, and a cubin. It is made beside a stranger's
// source, so every reader checks every field.
#pragma once

#include <stdint.h>
#include <string.h>

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
  char name[kKernelNameBytes];  // as in the cubin, NUL-terminated
};

// A checked image. Points into the bytes that it was read from.
struct DeviceImage {
  const DeviceImageKernel* kernels = nullptr;
  uint32_t kernel_count = 0;
  const unsigned char* cubin = nullptr;
};

// Returns false if the bytes are no valid image: damaged, truncated, or with a name without an end.
inline bool ReadDeviceImage(const void* bytes, uint64_t size_bytes, DeviceImage* image) {
  DeviceImageHeader header;
  if (bytes == nullptr || size_bytes < sizeof header) return false;
  memcpy(&header, bytes, sizeof header);
  const uint64_t names_bytes = uint64_t{header.kernel_count} * sizeof(DeviceImageKernel);
  const uint64_t rest_bytes = size_bytes - sizeof header;
  if (memcmp(header.magic, kDeviceImageMagic, sizeof header.magic) != 0 ||
      header.kernel_count == 0 || header.kernel_count > kDeviceKernelsMax ||
      header.cubin_bytes == 0 || rest_bytes < names_bytes ||
      rest_bytes - names_bytes < header.cubin_bytes)
    return false;
  const auto* begin = static_cast<const unsigned char*>(bytes) + sizeof header;
  image->kernels = reinterpret_cast<const DeviceImageKernel*>(begin);
  image->kernel_count = header.kernel_count;
  image->cubin = begin + names_bytes;
  for (uint32_t i = 0; i < image->kernel_count; ++i)
    if (memchr(image->kernels[i].name, 0, kKernelNameBytes) == nullptr) return false;
  return true;
}

}  // namespace assay::wire
