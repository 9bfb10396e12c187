// Reads a GPU's clock, the reasons that hold it down and the number of its node from NVML; sets
// nothing. NVML is opened at run time; without it verdicts have no clocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct ClockState {
  int sm_mhz = 0;       // of the multiprocessors, now; 0: unknown to NVML
  uint64_t limits = 0;  // NVML's bits for the reasons why it is not higher
};

// Returns some of "power cap", "heat", "power brake", "hardware"; nothing for an idle GPU, or for
// clocks that an administrator or an application set.
std::vector<std::string> ClockLimitNames(uint64_t limits);

class GpuClocks {
 public:
  // `library`: NVML's; null: the system's. nullopt: there is no NVML, or it does not know the GPU.
  static std::optional<GpuClocks> Open(const std::string& uuid, const char* library = nullptr);
  ClockState Read() const;
  // Returns N of /dev/nvidiaN; nullopt: unknown to NVML.
  std::optional<int> NodeNumber() const;

 private:
  struct Nvml;
  explicit GpuClocks(std::shared_ptr<const Nvml> nvml) : nvml_(std::move(nvml)) {}
  std::shared_ptr<const Nvml> nvml_;
};

}  // namespace assay
