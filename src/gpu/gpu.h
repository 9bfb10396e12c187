// The judge's GPU: one device, this process's context on it, and memory there that the judge owns
// and may share with hosts. Use from one thread. Nothing keeps a process from writing to memory
// that is shared with it, so masters and expected outputs are never shared with an untrusted one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cuda/driver.h"

namespace assay {

struct GpuFacts {
  std::string name;          // "NVIDIA H200"
  std::string uuid;          // "GPU-..." as NVML writes it
  std::string architecture;  // NVRTC's name: "sm_90a"
  int driver_version = 0;    // 13000: CUDA 13.0
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0, registers_per_multiprocessor = 0;
  int shared_bytes_per_multiprocessor = 0, shared_bytes_per_block = 0;
  int blocks_per_multiprocessor = 0;
  int reserved_shared_bytes_per_block = 0;  // CUDA's own
  uint64_t memory_bytes = 0, l2_bytes = 0;
  std::optional<int> node_number;  // N of /dev/nvidiaN; nullopt: unknown
};

// Names of the GPUs that CUDA shows here, in its order; empty: none, or no driver.
std::vector<std::string> GpuNames();

class Gpu {
 public:
  // Opens the first device that CUDA shows. `library`: the driver's; null: the system's. Errors
  // (kEnvironment): no driver or no device (kNoDevice), or one that cannot share memory.
  static Result<Gpu> Open(const char* library = nullptr);
  Gpu(Gpu&&) noexcept = default;
  Gpu& operator=(Gpu&&) noexcept = default;

  const GpuFacts& facts() const { return facts_; }
  void SetNodeNumber(std::optional<int> number) { facts_.node_number = number; }
  // "NVIDIA H200 (sm_90a, driver for CUDA 13.0)"
  std::string Describe() const;
  const cuda::Driver& driver() const { return *driver_; }
  // The folder of the driver's library, for processes that look for it themselves.
  const std::string& library_folder() const { return library_folder_; }
  // Free device memory now [bytes].
  uint64_t FreeBytes() const;
  // Memory in DeviceRegions of this process now [bytes].
  uint64_t held_bytes() const { return *held_bytes_; }
  // Turns a failed `result` into an error (kEnvironment): "cannot WHAT: CUDA_ERROR_...: ...". Its
  // code tells of no memory and of no device.
  Result<void> Check(cuda::Result result, std::string_view what) const;
  // Waits for all work of this process on the device.
  Result<void> Synchronize() const;
  // Copies from the device, and waits.
  Result<void> CopyToHost(void* target, cuda::Pointer source, uint64_t size_bytes) const;

 private:
  Gpu() = default;
  std::unique_ptr<cuda::Driver> driver_;
  GpuFacts facts_;
  std::string library_folder_;
  cuda::Device device_ = 0;
  std::shared_ptr<uint64_t> held_bytes_ = std::make_shared<uint64_t>(0);  // regions add to it
  friend class DeviceRegion;
};

// Device memory of the judge's, freed on destruction. Shared() has a descriptor that other
// processes can map; Private() never has one. The Gpu must outlive it.
class DeviceRegion {
 public:
  DeviceRegion() = default;
  // Errors (kEnvironment): no memory left (the message says how much is free), or CUDA's.
  static Result<DeviceRegion> Shared(const Gpu& gpu, uint64_t size_bytes);
  static Result<DeviceRegion> Private(const Gpu& gpu, uint64_t size_bytes);
  DeviceRegion(DeviceRegion&& other) noexcept;
  DeviceRegion& operator=(DeviceRegion&& other) noexcept;
  ~DeviceRegion();

  cuda::Pointer address() const { return address_; }
  uint64_t size_bytes() const { return size_bytes_; }  // whole pages of the device's
  int fd() const { return fd_.get(); }                 // -1 if private

 private:
  static Result<DeviceRegion> Create(const Gpu& gpu, uint64_t size_bytes, bool shared);

  const cuda::Driver* driver_ = nullptr;
  std::shared_ptr<uint64_t> held_bytes_;  // of all regions
  UniqueFd fd_;
  cuda::AllocationHandle handle_ = 0;
  cuda::Pointer address_ = 0;
  uint64_t size_bytes_ = 0;
  bool has_handle_ = false, is_mapped_ = false;
};

}  // namespace assay
