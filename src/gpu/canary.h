// Whether a GPU still answers after a process on it was killed; and those that did not.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "gpu/gpu.h"

namespace assay {

// A little work that has to come back right: a write to memory of the judge's, read again.
class GpuCanary {
 public:
  // Takes its memory now: later a candidate may have all there is. Errors (kEnvironment).
  static Result<GpuCanary> Create(const Gpu& gpu);
  // Errors (kEnvironment): no answer within `seconds`, CUDA's error, or another value than was
  // written. `gpu`: the one that it was created with.
  Result<void> Ask(const Gpu& gpu, double seconds);

 private:
  DeviceRegion memory_;
  uint32_t asked_ = 0;
};

// What a GPU gets for its answer: a context that is taken down lasts some seconds at most.
inline constexpr double kGpuAnswerS = 30;

// Where GPUs under quarantine are kept.
std::filesystem::path QuarantineFolder();
// A GPU that did not answer is not used again until `assay doctor` finds it well: a file in
// `folder` says why, by its UUID. Keeping it is tried, and no more: where the folder cannot be
// written the call that saw it has said so all the same.
void PutUnderQuarantine(const std::filesystem::path& folder, const std::string& uuid,
                        const std::string& why);
void LiftQuarantine(const std::filesystem::path& folder, const std::string& uuid);
// What is to be said instead of using the GPU: one is under quarantine, and `visible`, what
// CUDA_VISIBLE_DEVICES says, does not choose another by its UUID. Asks no driver: a GPU that hangs
// would hang whoever asks.
std::optional<std::string> FindQuarantine(const std::filesystem::path& folder, const char* visible);

}  // namespace assay
