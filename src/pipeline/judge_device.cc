#include "pipeline/judge_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/trace.h"
#include "pipeline/device_build.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// Contexts of the oracle and of a pair: 0.6 GiB each, with PyTorch.
constexpr uint64_t kContextsBytes = uint64_t{2} << 30;
// CUDA reserves the device's whole memory and more as addresses.
constexpr uint64_t kAddressSpaceBytes = uint64_t{1} << 46;

}  // namespace

Result<std::unique_ptr<JudgeDevice>> JudgeDevice::Open(InterruptFlag interrupt) {
  const Span span("open the device");
  if (auto refused = FindQuarantine(QuarantineFolder(), std::getenv("CUDA_VISIBLE_DEVICES")))
    return EnvironmentError(std::move(*refused));
  ASSAY_ASSIGN_OR_RETURN(Gpu gpu, Gpu::Open());
  ASSAY_ASSIGN_OR_RETURN(const std::string image,
                         JudgeKernelImage(gpu.facts().architecture, interrupt));
  return Open(std::move(gpu), image);
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

uint64_t JudgeDevice::BytesForValues() const {
  const uint64_t free_bytes = gpu_.FreeBytes();
  return std::max<uint64_t>(1, (free_bytes - std::min(free_bytes, kContextsBytes)) / 2);
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

std::vector<std::string> DeviceNodes(const std::string& folder, std::optional<int> number) {
  std::vector<std::string> gpus, nodes;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    const bool numbered =
        name.starts_with("nvidia") && name.size() > 6 &&
        std::all_of(name.begin() + 6, name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (numbered) gpus.push_back(entry.path().string());
    if (name == "nvidiactl" || name == "nvidia-uvm") nodes.push_back(entry.path().string());
  }
  const std::string own = number ? fmt::format("{}/nvidia{}", folder, *number) : "";
  if (std::find(gpus.begin(), gpus.end(), own) != gpus.end()) gpus = {own};
  nodes.insert(nodes.end(), gpus.begin(), gpus.end());
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

void AllowDevice(const Gpu& gpu, SandboxRequest* request, DeviceQueues queues) {
  for (std::string& node : DeviceNodes("/dev", gpu.facts().node_number))
    request->devices.push_back(std::move(node));
  std::error_code code;
  // What the driver's library reads of the system.
  for (const char* folder :
       {"/sys/module/nvidia", "/sys/module/nvidia_uvm", "/sys/bus/pci", "/sys/devices"})
    if (fs::exists(folder, code)) request->binds.push_back({folder, folder});
  const std::string& library = gpu.library_folder();
  if (!library.empty()) {
    if (!library.starts_with("/usr/")) request->binds.push_back({library, library});
    request->environment["LD_LIBRARY_PATH"] = library;
  }
  request->environment["ASSAY_DEVICE"] = "cuda";
  request->environment["CUDA_VISIBLE_DEVICES"] = gpu.facts().uuid;
  request->environment["CUDA_CACHE_PATH"] = "/tmp/cuda";
  if (queues == DeviceQueues::kOne) request->environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "1";
  request->limits.address_space_bytes = kAddressSpaceBytes;
}

std::string TorchArchitecture(const std::string& architecture) {
  std::string number = architecture.substr(architecture.find('_') + 1);
  const size_t digits = std::min(number.find_first_not_of("0123456789"), number.size());
  if (digits >= 2) number.insert(digits - 1, ".");
  return number;
}

void ShowToolkit(const Gpu& gpu, const std::string& toolkit, SandboxRequest* request) {
  request->environment["TORCH_CUDA_ARCH_LIST"] = TorchArchitecture(gpu.facts().architecture);
  if (!gpu.library_folder().empty())
    request->environment["TRITON_LIBCUDA_PATH"] = gpu.library_folder();
  if (toolkit.empty()) return;
  request->environment["CUDA_HOME"] = toolkit;
  if (!toolkit.starts_with("/usr/") && toolkit != "/usr")
    request->binds.push_back({toolkit, toolkit});
}

}  // namespace assay
