// The GPU that the judge works on.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/stop_token.h"
#include "gpu/canary.h"
#include "gpu/clocks.h"
#include "gpu/gpu.h"
#include "gpu/judge_kernels.h"
#include "model/dtype.h"

namespace assay {

// The judge's GPU with its own kernels on it, one a process.
class JudgeDevice {
 public:
  // Opens the GPU and compiles the judge's kernels for it, in the builder's sandbox. Errors
  // (kEnvironment): no driver, no device, no NVRTC, or a GPU under quarantine.
  static Result<std::unique_ptr<JudgeDevice>> Open(StopToken stop);
  // The same with an image that is at hand.
  static Result<std::unique_ptr<JudgeDevice>> Open(Gpu gpu, const std::string& image);

  const Gpu& gpu() const { return gpu_; }
  JudgeKernels& kernels() { return *kernels_; }
  // What a problem's values may take [bytes]: half of what is free now besides contexts, since
  // hosts under test have outputs of their own. 1 at least.
  uint64_t BytesForValues() const;
  // After processes on the GPU were killed: whether it answers. Where it does not it is put under
  // quarantine; `after`: what had run, for the message. Errors (kEnvironment).
  Result<void> CheckAnswers(const std::string& after);
  // Nothing where NVML is not there.
  const std::optional<GpuClocks>& clocks() const { return clocks_; }

 private:
  explicit JudgeDevice(Gpu gpu) : gpu_(std::move(gpu)) {}
  Gpu gpu_;
  std::optional<JudgeKernels> kernels_;
  std::optional<GpuCanary> canary_;
  std::optional<GpuClocks> clocks_;
};

// A dtype as the judge's kernels know it.
gpu::ElementType DeviceType(DType dtype);

}  // namespace assay
