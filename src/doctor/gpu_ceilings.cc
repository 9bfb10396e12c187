#include "doctor/gpu_ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "doctor/gpu_products.h"

namespace assay {
namespace {

constexpr const char* kFile = "ceiling_kernels.cu";
enum Kernel { kEmpty, kWeyl, kCopy, kRead, kFloat32, kFloat64 };
constexpr const char* kKernels[] = {"assay_empty", "assay_weyl",    "assay_copy",
                                    "assay_read",  "assay_float32", "assay_float64"};

constexpr uint64_t kVectorBytes = 16;
constexpr unsigned kThreads = GpuMeter::kThreads;
// Blocks a multiprocessor: two ways to keep enough reads in flight, the best of which counts.
constexpr unsigned kFew = 8, kMany = 32;
constexpr int kChains = 16;  // of a thread that multiplies and adds
constexpr double kFactor = 0.9995, kSummand = 0.25;

// The sum of so many words of assay_weyl, as unsigned numbers of 32 bits.
uint32_t WeylSum(uint64_t words) {
  return 2654435761U * static_cast<uint32_t>(words * (words - 1) / 2);
}

class OrdinaryUnits {
 public:
  OrdinaryUnits(GpuMeter& meter, const GpuModule& kernels, GpuCeilings* found)
      : meter_(meter), kernels_(kernels), found_(*found) {}

  Result<void> Measure() {
    ASSAY_RETURN_IF_ERROR(Prepare());
    ASSAY_RETURN_IF_ERROR(Reads());
    ASSAY_RETURN_IF_ERROR(Copies());
    ASSAY_RETURN_IF_ERROR(CachedReads());
    ASSAY_RETURN_IF_ERROR(MultiplyAdds<float>(kFloat32, "float32"));
    ASSAY_RETURN_IF_ERROR(MultiplyAdds<double>(kFloat64, "float64"));
    return Launches();
  }

 private:
  Result<void> Prepare() {
    const Gpu& gpu = meter_.gpu();
    bytes_ =
        std::min(meter_.effort().array_bytes, gpu.FreeBytes() / 8) / kVectorBytes * kVectorBytes;
    if (bytes_ < 4 * gpu.facts().l2_bytes)
      found_.notes.push_back(fmt::format(
          "little of the GPU's memory is free: arrays of {:.0f} MB, which its L2 cache of {:.0f} "
          "MB serves in part",
          static_cast<double>(bytes_) / 1e6, static_cast<double>(gpu.facts().l2_bytes) / 1e6));
    ASSAY_ASSIGN_OR_RETURN(from_, DeviceRegion::Private(gpu, bytes_));
    ASSAY_ASSIGN_OR_RETURN(to_, DeviceRegion::Private(gpu, bytes_));
    const uint64_t threads = uint64_t{kMany} * meter_.multiprocessors() * kThreads;
    ASSAY_ASSIGN_OR_RETURN(results_, DeviceRegion::Private(gpu, threads * sizeof(double)));
    return meter_.Launch(kernels_.kernel(kWeyl), Grid(kFew), from_.address(), Vectors(bytes_));
  }

  unsigned Grid(unsigned blocks) const { return blocks * meter_.multiprocessors(); }
  static long long Vectors(uint64_t bytes) { return static_cast<long long>(bytes / kVectorBytes); }
  static std::string Shape(unsigned blocks) {
    return fmt::format("{} x {} threads a multiprocessor", blocks, kThreads);
  }

  // Keeps the better one.
  void Keep(std::map<std::string, GpuRate>* rates, const char* name, GpuRate rate) {
    GpuRate& kept = (*rates)[name];
    if (rate.best > kept.best) kept = std::move(rate);
  }

  template <typename T>
  Result<std::vector<T>> Results(unsigned blocks) const {
    std::vector<T> results(size_t{blocks} * kThreads);
    ASSAY_RETURN_IF_ERROR(
        meter_.gpu().CopyToHost(results.data(), results_.address(), results.size() * sizeof(T)));
    return results;
  }

  // Whether the last launch of assay_read saw what must be there.
  Result<void> CheckSum(unsigned blocks, uint32_t expected, const char* what) const {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<uint32_t> sums, Results<uint32_t>(blocks));
    uint32_t sum = 0;
    for (const uint32_t part : sums) sum += part;
    if (sum == expected) return {};
    return EnvironmentError(fmt::format("the GPU's own {} came out wrong", what));
  }

  // `bytes` of an array, `passes` times; the better of two shapes.
  Result<void> ReadRate(const DeviceRegion& from, uint64_t bytes, int passes, unsigned few,
                        unsigned many, const char* name) {
    const uint32_t expected = static_cast<uint32_t>(passes) * WeylSum(bytes / 4);
    for (const unsigned blocks : {few, many}) {
      const auto launch = [&] {
        return meter_.Launch(kernels_.kernel(kRead), Grid(blocks), from.address(), Vectors(bytes),
                             passes, results_.address());
      };
      ASSAY_ASSIGN_OR_RETURN(
          GpuRate rate, meter_.Rate(launch, static_cast<double>(bytes) * passes, Shape(blocks)));
      ASSAY_RETURN_IF_ERROR(CheckSum(Grid(blocks), expected, "sum of what it read"));
      Keep(&found_.traffic, name, std::move(rate));
    }
    return {};
  }

  Result<void> Reads() { return ReadRate(from_, bytes_, 1, kFew, kMany, "read"); }

  // A quarter of the cache: its parts may each keep a copy.
  Result<void> CachedReads() {
    const uint64_t bytes = std::clamp<uint64_t>(
        meter_.gpu().facts().l2_bytes / 4 / kVectorBytes * kVectorBytes, uint64_t{1} << 16, bytes_);
    return ReadRate(from_, bytes, meter_.effort().passes, kFew / 2, kFew, "l2_read");
  }

  Result<void> Copies() {
    const auto once = static_cast<unsigned>(std::min<uint64_t>(
        (bytes_ / kVectorBytes + 4 * kThreads - 1) / (4 * kThreads), uint64_t{1} << 30));
    const struct {
      unsigned blocks;  // 0: the driver's own
      std::string how;
    } ways[] = {{Grid(kFew), Shape(kFew)},
                {Grid(kMany), Shape(kMany)},
                {once, "four vectors a thread"},
                {0, "the driver's copy"}};
    const cuda::Driver& driver = meter_.gpu().driver();
    for (const auto& [blocks, how] : ways) {
      ASSAY_RETURN_IF_ERROR(meter_.gpu().Check(
          driver.set_words(to_.address(), 0, bytes_ / 4, nullptr), "clear the GPU's memory"));
      const auto launch = [&, grid = blocks] {
        if (grid == 0)
          return meter_.gpu().Check(
              driver.copy_on_device(to_.address(), from_.address(), bytes_, nullptr),
              "copy the GPU's memory");
        return meter_.Launch(kernels_.kernel(kCopy), grid, from_.address(), to_.address(),
                             Vectors(bytes_));
      };
      ASSAY_ASSIGN_OR_RETURN(GpuRate rate,
                             meter_.Rate(launch, 2 * static_cast<double>(bytes_), how));
      ASSAY_RETURN_IF_ERROR(meter_.Launch(kernels_.kernel(kRead), Grid(kFew), to_.address(),
                                          Vectors(bytes_), 1, results_.address()));
      ASSAY_RETURN_IF_ERROR(CheckSum(Grid(kFew), WeylSum(bytes_ / 4), "copy"));
      Keep(&found_.traffic, "copy", std::move(rate));
    }
    return {};
  }

  template <typename Scalar>
  static Scalar ExpectedOf(unsigned thread, int rounds) {
    Scalar sum = 0;
    for (int i = 0; i < kChains; ++i) {
      Scalar chain = static_cast<Scalar>(i) + static_cast<Scalar>(thread % 32) / 32;
      for (int round = 0; round < rounds; ++round)
        chain = std::fma(chain, static_cast<Scalar>(kFactor), static_cast<Scalar>(kSummand));
      sum += chain;
    }
    return sum;
  }

  template <typename Scalar>
  Result<void> MultiplyAdds(Kernel kernel, const char* name) {
    const int rounds = meter_.effort().multiply_add_rounds;
    const unsigned grid = Grid(kFew);
    const auto launch = [&] {
      return meter_.Launch(kernels_.kernel(kernel), grid, results_.address(),
                           static_cast<Scalar>(kFactor), static_cast<Scalar>(kSummand), rounds);
    };
    const double operations = 2.0 * kChains * rounds * grid * kThreads;
    ASSAY_ASSIGN_OR_RETURN(GpuRate rate, meter_.Rate(launch, operations, "fma"));
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Scalar> results, Results<Scalar>(grid));
    for (const size_t thread : {size_t{0}, results.size() / 2 + 5, results.size() - 1}) {
      const Scalar expected = ExpectedOf<Scalar>(static_cast<unsigned>(thread), rounds);
      if (!(std::abs(results[thread] - expected) <= 1e-5 * expected))
        return EnvironmentError(
            fmt::format("the GPU's own multiply-adds in {} came out wrong", name));
    }
    Keep(&found_.arithmetic, name, std::move(rate));
    return {};
  }

  Result<void> Launches() {
    const auto launch = [&] { return meter_.Launch(kernels_.kernel(kEmpty), 1); };
    ASSAY_ASSIGN_OR_RETURN(const GpuMeter::Times row, meter_.Time(launch));
    const auto launch_and_wait = [&]() -> Result<void> {
      ASSAY_RETURN_IF_ERROR(launch());
      return meter_.gpu().Synchronize();
    };
    ASSAY_ASSIGN_OR_RETURN(const GpuMeter::Times waited, meter_.Time(launch_and_wait));
    found_.launch_ns = 1e9 * row.best_s;
    found_.launch_and_wait_ns = 1e9 * waited.median_s;
    return {};
  }

  GpuMeter& meter_;
  const GpuModule& kernels_;
  GpuCeilings& found_;
  uint64_t bytes_ = 0;
  DeviceRegion from_, to_, results_;
};

}  // namespace

Result<GpuCeilings> MeasureGpuCeilings(const Gpu& gpu, const KernelImages& images,
                                       const GpuEffort& effort, StopToken stop) {
  const GpuFacts& facts = gpu.facts();
  GpuCeilings found;
  found.created = UtcTimestamp();
  found.name = facts.name;
  found.uuid = facts.uuid;
  found.architecture = facts.architecture;
  found.driver_version = facts.driver_version;
  found.l2_bytes = facts.l2_bytes;
  ASSAY_ASSIGN_OR_RETURN(const std::string image, images(kFile, kKernels));
  ASSAY_ASSIGN_OR_RETURN(const GpuModule kernels, GpuModule::Load(gpu, image, std::size(kKernels)));
  GpuMeter meter(gpu, effort, stop);
  ASSAY_RETURN_IF_ERROR(OrdinaryUnits(meter, kernels, &found).Measure());
  ASSAY_RETURN_IF_ERROR(AddProducts(meter, images, &found));
  return found;
}

}  // namespace assay
