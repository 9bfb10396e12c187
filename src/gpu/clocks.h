// A GPU's clock, what holds it down, and which node it has, as NVML says: read, never set. NVML is
// opened at run time; without it verdicts say nothing of clocks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct ClockState {
  int sm_mhz = 0;       // of the multiprocessors, now; 0: NVML did not say
  uint64_t limits = 0;  // NVML's bits of why it is not higher
};

// "power cap", "heat", "power brake", "hardware"; nothing for an idle GPU, or for clocks that an
// administrator or an application has set.
std::vector<std::string> ClockLimitNames(uint64_t limits);

class GpuClocks {
 public:
  // The clocks of one GPU. `library`: NVML's, null for the system's. Nothing where there is none,
  // or it does not know the GPU.
  static std::optional<GpuClocks> Open(const std::string& uuid, const char* library = nullptr);
  ClockState Read() const;
  // N of /dev/nvidiaN; nothing where NVML does not say.
  std::optional<int> NodeNumber() const;

 private:
  struct Nvml;
  explicit GpuClocks(std::shared_ptr<const Nvml> nvml) : nvml_(std::move(nvml)) {}
  std::shared_ptr<const Nvml> nvml_;
};

}  // namespace assay
