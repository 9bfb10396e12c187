// The judge's GPU.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop_token.h"
#include "gpu/canary.h"
#include "gpu/clocks.h"
#include "gpu/gpu.h"
#include "gpu/judge_kernels.h"
#include "gpu/reserved_memory.h"
#include "model/dtype.h"
#include "values/memory_plan.h"
#include "values/varied_weights.h"

namespace assay {

struct Sharing {
  int sharers = 1;  // MemoryWish
  // Set: of a problem within another one, what it may take of that one's memory. If it needs more,
  // it does not wait.
  uint64_t within_bytes = 0;
  std::function<void(uint64_t bytes)> on_wait = [](uint64_t) {};
};

struct MemoryForValues {
  ReservedMemory reserved;    // of nothing for a problem within another one
  uint64_t values_bytes = 0;  // limit for the plan (values/memory_plan.h)
};

// The judge's GPU with the judge's kernels on it, one a process.
class JudgeDevice {
 public:
  // Opens the GPU and compiles the judge's kernels for it, in the builder's sandbox. Errors
  // (kEnvironment): no driver, no device, no NVRTC, or a GPU under quarantine.
  static Result<std::unique_ptr<JudgeDevice>> Open(StopToken stop);
  // The same with a given image of the kernels.
  static Result<std::unique_ptr<JudgeDevice>> Open(Gpu gpu, const std::string& image);

  const Gpu& gpu() const { return gpu_; }
  JudgeKernels& kernels() { return *kernels_; }
  // Returns what values may take of so much of the device's memory [bytes], at least 1: all but a
  // reserve for contexts.
  static uint64_t BytesForValues(uint64_t device_bytes);
  // Returns what values may take of the memory that is free now.
  uint64_t BytesForValues() const { return BytesForValues(gpu_.FreeBytes()); }
  // Reserves what judging a problem takes of the device. Errors as ReservedMemory's.
  Result<MemoryForValues> ReserveFor(const CallBytes& call, const Sharing& sharing,
                                     StopToken stop) const;
  // Checks that the GPU answers, after processes on it were killed. Otherwise puts it under
  // quarantine and fails (kEnvironment). `after`: names the killed work, for the message.
  Result<void> CheckAnswers(const std::string& after);
  // nullopt without NVML.
  const std::optional<GpuClocks>& clocks() const { return clocks_; }

 private:
  explicit JudgeDevice(Gpu gpu) : gpu_(std::move(gpu)) {}
  Gpu gpu_;
  std::optional<JudgeKernels> kernels_;
  std::optional<GpuCanary> canary_;
  std::optional<GpuClocks> clocks_;
};

// Adds the parameters that vary in this version to `tensors`, at their places on the device.
void PlaceVersion(const VariedWeights& weights, uint64_t version, cuda::Pointer constructed,
                  cuda::Pointer copy, std::vector<gpu::VariedTensor>* tensors);

// Returns the judge's kernels' type for a dtype.
gpu::ElementType DeviceType(DType dtype);

}  // namespace assay
