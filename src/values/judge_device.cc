#include "values/judge_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/trace.h"
#include "builders/device_build.h"

namespace assay {
namespace {

// Contexts of the oracle and of a pair, 0.6 GiB each with PyTorch, of a host that starts ahead, and
// memory for the results that a host leaves.
constexpr uint64_t kContextsBytes = uint64_t{4} << 30;

}  // namespace

Result<std::unique_ptr<JudgeDevice>> JudgeDevice::Open(StopToken stop) {
  const Span span("open the device");
  if (auto refused = FindQuarantine(QuarantineFolder(), std::getenv("CUDA_VISIBLE_DEVICES")))
    return EnvironmentError(std::move(*refused));
  auto gpu = Gpu::Open();
  if (!gpu)
    return Fail(ErrorKind::kEnvironment,
                fmt::format("a .cu file, or --device cuda, needs an NVIDIA GPU, which this machine "
                            "lacks or cannot use: {}",
                            gpu.error().message),
                gpu.error().code);
  ASSAY_ASSIGN_OR_RETURN(const std::string image,
                         JudgeKernelImage(gpu->facts().architecture, stop));
  return Open(std::move(*gpu), image);
}

Result<std::unique_ptr<JudgeDevice>> JudgeDevice::Open(Gpu gpu, const std::string& image) {
  std::unique_ptr<JudgeDevice> device(new JudgeDevice(std::move(gpu)));
  device->clocks_ = GpuClocks::Open(device->gpu_.facts().uuid);
  if (device->clocks_) device->gpu_.SetNodeNumber(device->clocks_->NodeNumber());
  ASSAY_ASSIGN_OR_RETURN(JudgeKernels kernels, JudgeKernels::Load(device->gpu_, image));
  device->kernels_.emplace(std::move(kernels));
  ASSAY_ASSIGN_OR_RETURN(GpuCanary canary, GpuCanary::Create(device->gpu_));
  device->canary_.emplace(std::move(canary));
  return device;
}

uint64_t JudgeDevice::BytesForValues(int sharers) const {
  const uint64_t part_bytes = gpu_.facts().memory_bytes / static_cast<uint64_t>(sharers);
  const uint64_t free_bytes =
      sharers == 1 ? gpu_.FreeBytes() : std::min(gpu_.FreeBytes(), part_bytes);
  return std::max<uint64_t>(1, free_bytes - std::min(free_bytes, kContextsBytes));
}

Result<void> JudgeDevice::CheckAnswers(const std::string& after) {
  const Span span("canary");
  auto answer = canary_->Ask(gpu_, kGpuAnswerS);
  if (answer) return {};
  const std::string why = fmt::format("after {}, {}", after, answer.error().message);
  PutUnderQuarantine(QuarantineFolder(), gpu_.facts().uuid, why);
  return EnvironmentError(fmt::format(
      "{}; it is under quarantine until assay doctor --device cuda finds it well", why));
}

void PlaceVersion(const VariedWeights& weights, uint64_t version, cuda::Pointer constructed,
                  cuda::Pointer copy, std::vector<gpu::VariedTensor>* tensors) {
  for (const VariedWeights::Varied& tensor : weights.TensorsOf(version))
    tensors->push_back({reinterpret_cast<const unsigned long long*>(constructed + tensor.offset),
                        reinterpret_cast<unsigned long long*>(copy + tensor.offset), tensor.words,
                        tensor.variation});
}

gpu::ElementType DeviceType(DType dtype) {
  using gpu::ElementType;
  switch (dtype) {
    case DType::kFloat64:
      return ElementType::kFloat64;
    case DType::kFloat32:
      return ElementType::kFloat32;
    case DType::kFloat16:
      return ElementType::kFloat16;
    case DType::kBFloat16:
      return ElementType::kBFloat16;
    case DType::kBool:
      return ElementType::kBool;
    default:
      return ElementType::kBytes;
  }
}

}  // namespace assay
