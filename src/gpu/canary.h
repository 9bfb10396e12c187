// Asks a GPU for an answer after a process on it was killed, and keeps a list of GPUs that gave
// none (the quarantine).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "gpu/gpu.h"

namespace assay {

// Writes to memory of the judge's on the GPU, and reads it back.
class GpuCanary {
 public:
  // Takes its memory at once: later a candidate may hold all of it. Errors: kEnvironment.
  static Result<GpuCanary> Create(const Gpu& gpu);
  // `gpu`: the one given to Create(). Errors (kEnvironment): no answer within `seconds`, CUDA's
  // error, or a value other than the one written.
  Result<void> Ask(const Gpu& gpu, double seconds);

 private:
  DeviceRegion memory_;
  uint32_t asked_ = 0;
};

// Time limit for a GPU's answer: taking a context down lasts some seconds at most.
inline constexpr double kGpuAnswerS = 30;

// The folder of the quarantine.
std::filesystem::path QuarantineFolder();
// Bars a GPU that did not answer until `assay doctor` finds it well: writes `why` to a file in
// `folder`, named by the GPU's UUID. A failed write is ignored: the caller reports the GPU anyway.
void PutUnderQuarantine(const std::filesystem::path& folder, const std::string& uuid,
                        const std::string& why);
void LiftQuarantine(const std::filesystem::path& folder, const std::string& uuid);
// Returns a message if no GPU may be used: one is under quarantine, and `visible` (the value of
// CUDA_VISIBLE_DEVICES, or null) does not choose another by its UUID. Calls no driver: on a GPU
// that hangs, the call would hang, too.
std::optional<std::string> FindQuarantine(const std::filesystem::path& folder, const char* visible);

}  // namespace assay
