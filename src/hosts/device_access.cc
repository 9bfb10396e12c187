#include "hosts/device_access.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

namespace assay {
namespace {

namespace fs = std::filesystem;

// CUDA reserves the device's whole memory and more as addresses.
constexpr uint64_t kAddressSpaceBytes = uint64_t{1} << 46;
constexpr const char* kConnections = "CUDA_DEVICE_MAX_CONNECTIONS";

}  // namespace

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

std::optional<std::string> ConnectionsOf(DeviceQueues queues) {
  if (const char* own = ::getenv(kConnections); own != nullptr && *own != 0) return own;
  if (queues == DeviceQueues::kOne) return "1";
  return std::nullopt;
}

void ShowDriver(const Gpu& gpu, SandboxRequest* request) {
  const std::string& library = gpu.library_folder();
  if (library.empty()) return;
  if (!library.starts_with("/usr/")) request->binds.push_back({library, library});
  request->environment["LD_LIBRARY_PATH"] = library;
}

void AllowDevice(const Gpu& gpu, SandboxRequest* request, DeviceQueues queues) {
  for (std::string& node : DeviceNodes("/dev", gpu.facts().node_number))
    request->devices.push_back(std::move(node));
  std::error_code code;
  // What the driver's library reads of the system.
  for (const char* folder :
       {"/sys/module/nvidia", "/sys/module/nvidia_uvm", "/sys/bus/pci", "/sys/devices"})
    if (fs::exists(folder, code)) request->binds.push_back({folder, folder});
  ShowDriver(gpu, request);
  request->environment["ASSAY_DEVICE"] = "cuda";
  request->environment["CUDA_VISIBLE_DEVICES"] = gpu.facts().uuid;
  request->environment["CUDA_CACHE_PATH"] = "/tmp/cuda";
  if (const auto connections = ConnectionsOf(queues))
    request->environment[kConnections] = *connections;
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
