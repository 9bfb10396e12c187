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

// The amount of measuring for one GPU's ceilings.
struct GpuEffort {
  double block_s = 0.02;   // least length of a block, which hides the time of a launch and a wait
  int blocks = 7;          // of one figure; the best counts, the median is kept
  double figure_s = 0.35;  // no block of a figure begins later, except the first three
  double all_s = 6;        // of measuring; no figure of the matrix units begins later
  uint64_t array_bytes = uint64_t{1} << 30;  // each array of a copy, if memory allows
  int passes = 64;                           // of a launch, over data in the L2 cache
  int multiply_add_rounds = 8191;            // of a launch; odd, as each swaps the halves
  int product_rounds = 4096;                 // of a launch; a multiple of four
};

// Kernels of Assay on the GPU, which must outlive this object.
class GpuModule {
 public:
  // `image`: a device image (wire/device_image.h) of `count` kernels. Errors (kEnvironment).
  static Result<GpuModule> Load(const Gpu& gpu, const std::string& image, size_t count);
  GpuModule(GpuModule&& other) noexcept;
  GpuModule& operator=(GpuModule&&) = delete;
  ~GpuModule();

  // By the order in the image.
  cuda::Function kernel(size_t index) const { return kernels_[index]; }

 private:
  explicit GpuModule(const Gpu& gpu) : gpu_(&gpu) {}
  const Gpu* gpu_;
  cuda::Module module_ = nullptr;
  std::vector<cuda::Function> kernels_;
};

// Returns the image of kernels in one of Assay's sources, src/gpu/FILE, for the present GPU.
using KernelImages =
    std::function<Result<std::string>(std::string_view file, std::span<const char* const> kernels)>;

class GpuMeter {
 public:
  static constexpr unsigned kThreads = 256;

  // Copies its arguments except the GPU, which must outlive this object.
  GpuMeter(const Gpu& gpu, const GpuEffort& effort, StopToken stop);

  const Gpu& gpu() const { return gpu_; }
  const GpuEffort& effort() const { return effort_; }
  bool TimeIsUp() const { return spent_s_ > effort_.all_s; }
  unsigned multiprocessors() const;

  // Times of one launch, over blocks of many.
  struct Times {
    double best_s = 0, median_s = 0;
  };
  // Warms up, chooses the number of launches in a block, and times blocks. Errors: kInterrupted,
  // kEnvironment.
  Result<Times> Time(const std::function<Result<void>()>& launch);
  // Returns the same as a rate; each launch does `work`.
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
