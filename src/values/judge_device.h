// The judge's GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop_token.h"
#include "gpu/canary.h"
#include "gpu/clocks.h"
#include "gpu/gpu.h"
#include "gpu/judge_kernels.h"
#include "model/dtype.h"
#include "values/varied_weights.h"

namespace assay {

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
  // Returns the memory that judging a problem may take [bytes], at least 1: what is free now less
  // a reserve for contexts; of a part of the device's, where `sharers` judges use it.
  uint64_t BytesForValues(int sharers = 1) const;
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
