#include "gpu/clocks.h"

#include <dlfcn.h>

#include <utility>

namespace assay {
namespace {

// NVML's C interface, as its reference gives it; a result is an enum whose 0 is success.
using Device = void*;
constexpr unsigned kSmClock = 1;  // NVML_CLOCK_SM

constexpr std::pair<uint64_t, const char*> kLimits[] = {
    {0x04, "power cap"},    // SwPowerCap
    {0x80, "power brake"},  // HwPowerBrakeSlowdown
    {0x20, "heat"},         // SwThermalSlowdown
    {0x40, "heat"},         // HwThermalSlowdown
    {0x08, "hardware"}};    // HwSlowdown: any of the above, or power that is lost

}  // namespace

struct GpuClocks::Nvml {
  void* library = nullptr;
  Device device = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_uuid)(const char* uuid, Device*) = nullptr;
  int (*clock)(Device, unsigned kind, unsigned* mhz) = nullptr;
  int (*limits)(Device, unsigned long long* bits) = nullptr;
  int (*minor_number)(Device, unsigned* number) = nullptr;

  ~Nvml() {
    if (device != nullptr) shutdown();
  }
};

std::vector<std::string> ClockLimitNames(uint64_t limits) {
  std::vector<std::string> names;
  for (const auto& [bit, name] : kLimits)
    if ((limits & bit) != 0 && (names.empty() || names.back() != name)) names.emplace_back(name);
  // Where the cause is known, the sum of causes says no more.
  if (names.size() > 1 && names.back() == "hardware") names.pop_back();
  return names;
}

std::optional<GpuClocks> GpuClocks::Open(const std::string& uuid, const char* library) {
  auto nvml = std::make_shared<Nvml>();
  nvml->library =
      ::dlopen(library == nullptr ? "libnvidia-ml.so.1" : library, RTLD_NOW | RTLD_LOCAL);
  if (nvml->library == nullptr) return std::nullopt;
  const auto find = [&](auto* function, const char* name) {
    *function =
        reinterpret_cast<std::remove_pointer_t<decltype(function)>>(::dlsym(nvml->library, name));
    return *function != nullptr;
  };
  if (!find(&nvml->init, "nvmlInit_v2") || !find(&nvml->shutdown, "nvmlShutdown") ||
      !find(&nvml->by_uuid, "nvmlDeviceGetHandleByUUID") ||
      !find(&nvml->clock, "nvmlDeviceGetClockInfo") ||
      !find(&nvml->limits, "nvmlDeviceGetCurrentClocksThrottleReasons") ||
      !find(&nvml->minor_number, "nvmlDeviceGetMinorNumber") || nvml->init() != 0)
    return std::nullopt;
  Device device = nullptr;
  if (nvml->by_uuid(uuid.c_str(), &device) != 0 || device == nullptr) {
    nvml->shutdown();
    return std::nullopt;
  }
  nvml->device = device;
  return GpuClocks(std::move(nvml));
}

ClockState GpuClocks::Read() const {
  unsigned mhz = 0;
  unsigned long long bits = 0;
  if (nvml_->clock(nvml_->device, kSmClock, &mhz) != 0) mhz = 0;
  if (nvml_->limits(nvml_->device, &bits) != 0) bits = 0;
  return ClockState{static_cast<int>(mhz), bits};
}

std::optional<int> GpuClocks::NodeNumber() const {
  unsigned number = 0;
  if (nvml_->minor_number(nvml_->device, &number) != 0) return std::nullopt;
  return static_cast<int>(number);
}

}  // namespace assay
