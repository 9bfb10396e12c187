#include "doctor/gpu_meter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/median.h"
#include "wire/device_image.h"

namespace assay {
namespace {

constexpr int kBlocksMin = 3;
constexpr int kLaunchesMax = 100'000;

double SecondsSince(int64_t begin_ns) {
  return static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
}

}  // namespace

Result<GpuModule> GpuModule::Load(const Gpu& gpu, const std::string& image, size_t count) {
  wire::DeviceImage read;
  if (!wire::ReadDeviceImage(image.data(), image.size(), &read) || read.kernel_count != count)
    return EnvironmentError("the kernels that measure the GPU are damaged");
  GpuModule module(gpu);
  const cuda::Driver& driver = gpu.driver();
  ASSAY_RETURN_IF_ERROR(gpu.Check(driver.module_load(&module.module_, read.cubin),
                                  "load the kernels that measure the GPU"));
  module.kernels_.resize(count);
  for (size_t i = 0; i < count; ++i)
    ASSAY_RETURN_IF_ERROR(
        gpu.Check(driver.module_function(&module.kernels_[i], module.module_, read.kernels[i].name),
                  "find a kernel that measures the GPU"));
  return module;
}

GpuModule::GpuModule(GpuModule&& other) noexcept
    : gpu_(other.gpu_),
      module_(std::exchange(other.module_, nullptr)),
      kernels_(std::move(other.kernels_)) {}

GpuModule::~GpuModule() {
  if (module_ != nullptr) gpu_->driver().module_unload(module_);
}

GpuMeter::GpuMeter(const Gpu& gpu, const GpuEffort& effort, StopToken stop)
    : gpu_(gpu), effort_(effort), stop_(stop) {}

unsigned GpuMeter::multiprocessors() const {
  return static_cast<unsigned>(std::max(1, gpu_.facts().multiprocessors));
}

// Seconds of one launch.
Result<double> GpuMeter::Block(const std::function<Result<void>()>& launch, int count) {
  const int64_t begin_ns = MonotonicNs();
  for (int i = 0; i < count; ++i) ASSAY_RETURN_IF_ERROR(launch());
  ASSAY_RETURN_IF_ERROR(gpu_.Synchronize());
  const double seconds = std::max(SecondsSince(begin_ns), 1e-9);
  spent_s_ += seconds;
  return seconds / count;
}

Result<GpuMeter::Times> GpuMeter::Time(const std::function<Result<void>()>& launch) {
  int count = 1;
  // The first launch loads code; the first block brings the clocks up.
  for (int warm_up = 0; warm_up < 3; ++warm_up) {
    ASSAY_ASSIGN_OR_RETURN(const double one_s, Block(launch, count));
    count = static_cast<int>(
        std::clamp(std::ceil(effort_.block_s / one_s), 1.0, static_cast<double>(kLaunchesMax)));
  }
  const int64_t begin_ns = MonotonicNs();
  std::vector<double> blocks;
  for (int i = 0; i < effort_.blocks; ++i) {
    if (i >= kBlocksMin && SecondsSince(begin_ns) > effort_.figure_s) break;
    if (stop_.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
    ASSAY_ASSIGN_OR_RETURN(const double one_s, Block(launch, count));
    blocks.push_back(one_s);
  }
  return Times{*std::min_element(blocks.begin(), blocks.end()), Median(blocks)};
}

Result<GpuRate> GpuMeter::Rate(const std::function<Result<void>()>& launch, double work,
                               std::string how) {
  ASSAY_ASSIGN_OR_RETURN(const Times times, Time(launch));
  return GpuRate{work / times.best_s, work / times.median_s, std::move(how)};
}

}  // namespace assay
