#include "pipeline/device_memory.h"

#include <fmt/format.h>

namespace assay {
namespace {

// A context and PyTorch's kernels, and room for what a call takes.
constexpr uint64_t kContextBytes = uint64_t{1} << 30;
// Hosts of both sides that a judgement may have on the device at a time.
constexpr uint64_t kHosts = 12;

}  // namespace

DeviceMemory::DeviceMemory(const Gpu& gpu, uint64_t host_bytes)
    : gpu_(&gpu),
      needed_bytes_(kContextBytes + host_bytes),
      plenty_bytes_((kHosts + 1) * needed_bytes_) {}

std::optional<std::string> DeviceMemory::Taken() const {
  if (found_bytes_ < plenty_bytes_) return std::nullopt;
  const uint64_t left_bytes = gpu_->FreeBytes();
  if (left_bytes >= needed_bytes_) return std::nullopt;
  constexpr double kGigabyte = 1e9;
  return fmt::format(
      "it takes the GPU's memory: {:.1f} GB were free before it, {:.2f} GB are left, and the "
      "reference needs {:.1f} GB",
      static_cast<double>(found_bytes_) / kGigabyte, static_cast<double>(left_bytes) / kGigabyte,
      static_cast<double>(needed_bytes_) / kGigabyte);
}

}  // namespace assay
