// Times launches on a GPU for its ceilings: blocks of launches, by this processor's clock.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/gpu.h"
#include "hosts/host.h"
#include "model/machine_profile.h"

namespace assay {

// How much is done for one GPU's ceilings.
struct GpuEffort {
  double block_s = 0.02;   // least length of a block: what a launch and a wait take is lost in it
  int blocks = 7;          // of one figure, which counts the best and keeps the median
  double figure_s = 0.35;  // no block of a figure begins later, but three are measured at least
  double all_s = 6;        // of measuring, after which no figure of the matrix units begins
  uint64_t array_bytes = uint64_t{1} << 30;  // each array of a copy, where memory is free
  int passes = 64;                           // of a launch, over what lies in the L2 cache
  int multiply_add_rounds = 8191;            // of a launch; odd, as halves turn over in each
  int product_rounds = 4096;                 // of a launch; a multiple of four
};

// Kernels of Assay's own on the GPU, which must stay.
class GpuModule {
 public:
  // `image`: a device image (wire/device_image.h) of `count` kernels. Errors (kEnvironment).
  static Result<GpuModule> Load(const Gpu& gpu, const std::string& image, size_t count);
  GpuModule(GpuModule&& other) noexcept;
  GpuModule& operator=(GpuModule&&) = delete;
  ~GpuModule();

  // In the order in which the image holds them.
  cuda::Function kernel(size_t index) const { return kernels_[index]; }

 private:
  explicit GpuModule(const Gpu& gpu) : gpu_(&gpu) {}
  const Gpu* gpu_;
  cuda::Module module_ = nullptr;
  std::vector<cuda::Function> kernels_;
};

// The image of kernels in one of Assay's own sources, src/gpu/FILE, for the GPU at hand.
using KernelImages =
    std::function<Result<std::string>(std::string_view file, std::span<const char* const> kernels)>;

class GpuMeter {
 public:
  static constexpr unsigned kThreads = 256;

  // All but the GPU is copied; it must stay.
  GpuMeter(const Gpu& gpu, const GpuEffort& effort, StopToken stop);

  const Gpu& gpu() const { return gpu_; }
  const GpuEffort& effort() const { return effort_; }
  bool TimeIsUp() const { return spent_s_ > effort_.all_s; }
  unsigned multiprocessors() const;

  // Of one launch, over blocks of many.
  struct Times {
    double best_s = 0, median_s = 0;
  };
  // Warms up, finds how many launches make a block, and times blocks. Errors (kInterrupted,
  // kEnvironment).
  Result<Times> Time(const std::function<Result<void>()>& launch);
  // The same as a rate, of `work` a launch.
  Result<GpuRate> Rate(const std::function<Result<void>()>& launch, double work, std::string how);

  template <typename... Arguments>
  Result<void> Launch(cuda::Function kernel, unsigned blocks, Arguments... arguments) const {
    void* parameters[] = {&arguments..., nullptr};
    cuda::LaunchConfig config;
    config.grid_x = blocks;
    config.block_x = kThreads;
    return gpu_.Check(gpu_.driver().launch(&config, kernel, parameters, nullptr),
                      "run a kernel that measures the GPU");
  }

 private:
  Result<double> Block(const std::function<Result<void>()>& launch, int count);

  const Gpu& gpu_;
  GpuEffort effort_;
  StopToken stop_;
  double spent_s_ = 0;  // on blocks
};

}  // namespace assay
