// Times work of this process on the GPU by its own clock.
#pragma once

#include "gpu/gpu.h"

namespace assay {

// Two events on the default stream. `gpu` must outlive it.
class GpuTimer {
 public:
  static Result<GpuTimer> Create(const Gpu& gpu);
  GpuTimer(GpuTimer&& other) noexcept;
  GpuTimer& operator=(GpuTimer&& other) noexcept;
  ~GpuTimer();

  Result<void> Begin();
  // Waits for the work since Begin(). Returns its time [ms].
  Result<double> End();

 private:
  explicit GpuTimer(const Gpu& gpu) : gpu_(&gpu) {}
  const Gpu* gpu_;
  cuda::Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace assay
