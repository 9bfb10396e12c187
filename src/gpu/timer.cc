#include "gpu/timer.h"

#include <utility>

namespace assay {

Result<GpuTimer> GpuTimer::Create(const Gpu& gpu) {
  GpuTimer timer(gpu);
  for (cuda::Event* event : {&timer.begin_, &timer.end_})
    ASSAY_RETURN_IF_ERROR(gpu.Check(gpu.driver().event_create(event, 0), "make an event"));
  return timer;
}

GpuTimer::GpuTimer(GpuTimer&& other) noexcept
    : gpu_(other.gpu_),
      begin_(std::exchange(other.begin_, nullptr)),
      end_(std::exchange(other.end_, nullptr)) {}

GpuTimer& GpuTimer::operator=(GpuTimer&& other) noexcept {
  std::swap(gpu_, other.gpu_);
  std::swap(begin_, other.begin_);
  std::swap(end_, other.end_);
  return *this;
}

GpuTimer::~GpuTimer() {
  for (const cuda::Event event : {begin_, end_})
    if (event != nullptr) gpu_->driver().event_destroy(event);
}

Result<void> GpuTimer::Begin() {
  return gpu_->Check(gpu_->driver().event_record(begin_, nullptr), "time work on the GPU");
}

Result<double> GpuTimer::End() {
  const cuda::Driver& driver = gpu_->driver();
  float ms = 0;
  ASSAY_RETURN_IF_ERROR(gpu_->Check(driver.event_record(end_, nullptr), "time work on the GPU"));
  ASSAY_RETURN_IF_ERROR(gpu_->Check(driver.event_synchronize(end_), "wait for the GPU"));
  ASSAY_RETURN_IF_ERROR(
      gpu_->Check(driver.event_elapsed_ms(&ms, begin_, end_), "time work on the GPU"));
  return ms;
}

}  // namespace assay
