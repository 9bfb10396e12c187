#include "values/judge_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
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

uint64_t JudgeDevice::BytesForValues(uint64_t device_bytes) {
  return std::max<uint64_t>(1, device_bytes - std::min(device_bytes, kContextsBytes));
}

Result<MemoryForValues> JudgeDevice::ReserveFor(const CallBytes& call, const Sharing& sharing,
                                                StopToken stop) const {
  const uint64_t least_bytes = LeastBytes(call);
  if (sharing.within_bytes > 0 && least_bytes <= sharing.within_bytes)
    return MemoryForValues{{}, sharing.within_bytes};
  const GpuFacts& facts = gpu_.facts();
  MemoryForValues memory;
  ASSAY_ASSIGN_OR_RETURN(
      memory.reserved,
      ReservedMemory::Reserve({StateFolder() / "turns", facts.uuid, facts.memory_bytes,
                               [this] { return gpu_.FreeBytes(); }},
                              {.least_bytes = least_bytes + kContextsBytes,
                               .sharers = sharing.sharers,
                               .waits = sharing.within_bytes == 0,
                               .on_wait = sharing.on_wait},
                              stop));
  memory.values_bytes = BytesForValues(memory.reserved.bytes());
  // Of all that is free others may have what the plan leaves. It is not known without an estimate.
  if (sharing.sharers == 1 && least_bytes > 0)
    memory.reserved.Shrink(PlannedBytes(call, memory.values_bytes) + kContextsBytes);
  return memory;
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
