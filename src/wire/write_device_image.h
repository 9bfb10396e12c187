// Writes device images. Apart from wire/device_image.h, as the native host has no C++ library.
#pragma once

#include <stdint.h>
#include <string.h>

#include <string>
#include <string_view>
#include <vector>

#include "wire/device_image.h"

namespace assay::wire {

// `kernels`: names as in the cubin. Returns an empty string if there are no names or too many, a
// name is too long, or the cubin is empty.
inline std::string WriteDeviceImage(const std::vector<std::string>& kernels,
                                    std::string_view cubin) {
  if (kernels.empty() || kernels.size() > kDeviceKernelsMax || cubin.empty()) return {};
  DeviceImageHeader header{};
  memcpy(header.magic, kDeviceImageMagic, sizeof header.magic);
  header.kernel_count = static_cast<uint32_t>(kernels.size());
  header.cubin_bytes = cubin.size();
  std::string image(reinterpret_cast<const char*>(&header), sizeof header);
  for (const std::string& name : kernels) {
    DeviceImageKernel kernel{};
    if (name.size() >= sizeof kernel.name) return {};
    memcpy(kernel.name, name.data(), name.size());
    image.append(reinterpret_cast<const char*>(&kernel), sizeof kernel);
  }
  return image.append(cubin);
}

}  // namespace assay::wire
