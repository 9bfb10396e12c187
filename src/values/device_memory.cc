#include "values/device_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace assay {
namespace {

// A context and PyTorch's kernels, and room for what a call takes.
constexpr uint64_t kContextBytes = uint64_t{1} << 30;

constexpr uint64_t kWeightsCopies = 3;

}  // namespace

uint64_t HostBytes(const HostDemand& demand) {
  return demand.outputs_bytes + demand.results_bytes + kWeightsCopies * demand.weights_bytes +
         demand.working_bytes;
}

DeviceMemory::DeviceMemory(const Gpu& gpu, uint64_t host_bytes, bool is_scarce)
    : gpu_(&gpu), is_scarce_(is_scarce), needed_bytes_(kContextBytes + host_bytes) {}

int DeviceMemory::HostsAtATime(int wanted, uint64_t host_bytes, int parts) const {
  if (is_scarce_) return 1;
  const uint64_t fit =
      gpu_->FreeBytes() / static_cast<uint64_t>(parts) / (kContextBytes + host_bytes);
  return std::max(1, static_cast<int>(std::min(fit, static_cast<uint64_t>(std::max(wanted, 1)))));
}

void DeviceMemory::Begin() {
  found_bytes_ = gpu_->FreeBytes();
  left_bytes_.reset();
}

void DeviceMemory::NoteTrouble() {
  const uint64_t free_bytes = gpu_->FreeBytes();
  if (left_bytes_ && *left_bytes_ <= free_bytes) return;
  left_bytes_ = free_bytes;
  held_bytes_ = gpu_->held_bytes();
}

std::optional<std::string> DeviceMemory::Taken() const {
  if (!left_bytes_ || *left_bytes_ >= needed_bytes_) return std::nullopt;
  const uint64_t free_bytes = gpu_->FreeBytes();
  const uint64_t given_back_bytes = held_bytes_ - std::min(held_bytes_, gpu_->held_bytes());
  const uint64_t back_bytes = free_bytes - std::min(free_bytes, *left_bytes_ + given_back_bytes);
  if (back_bytes < needed_bytes_ || 2 * back_bytes <= found_bytes_) return std::nullopt;
  constexpr double kGigabyte = 1e9;
  return fmt::format(
      "it, or another program, takes the GPU's memory: {:.2f} GB were left where the reference "
      "needs {:.1f} GB, and "
      "{:.1f} GB came back when it ended",
      static_cast<double>(*left_bytes_) / kGigabyte, static_cast<double>(needed_bytes_) / kGigabyte,
      static_cast<double>(back_bytes) / kGigabyte);
}

}  // namespace assay
