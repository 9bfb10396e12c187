#include "gpu/canary.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWords = 1024;
constexpr size_t kNoteBytesMax = 4096;

}  // namespace

Result<GpuCanary> GpuCanary::Create(const Gpu& gpu) {
  GpuCanary canary;
  ASSAY_ASSIGN_OR_RETURN(canary.memory_, DeviceRegion::Private(gpu, kWords * sizeof(unsigned int)));
  return canary;
}

Result<void> GpuCanary::Ask(const Gpu& gpu, double seconds) {
  const unsigned int value = 0xC0FFEE00u + ++asked_;
  ASSAY_RETURN_IF_ERROR(
      gpu.Check(gpu.driver().set_words(memory_.address(), value, kWords, nullptr), "ask the GPU"));
  const Deadline deadline = Deadline::AfterSeconds(seconds);
  cuda::Result result;
  while ((result = gpu.driver().stream_query(nullptr)) == cuda::kNotReady) {
    if (deadline.Expired())
      return EnvironmentError(
          fmt::format("{} has not answered for {:.0f} s", gpu.Describe(), seconds));
    ::sched_yield();
  }
  ASSAY_RETURN_IF_ERROR(gpu.Check(result, "ask the GPU"));
  unsigned int read[kWords];
  ASSAY_RETURN_IF_ERROR(gpu.CopyToHost(read, memory_.address(), sizeof read));
  if (std::all_of(read, read + kWords, [value](unsigned int word) { return word == value; }))
    return {};
  return EnvironmentError(
      fmt::format("{} gave other values back than were written to it", gpu.Describe()));
}

fs::path QuarantineFolder() { return StateFolder() / "quarantine"; }

void PutUnderQuarantine(const fs::path& folder, const std::string& uuid, const std::string& why) {
  static_cast<void>(WriteFileAtomically(folder / uuid, why + "\n"));
}

void LiftQuarantine(const fs::path& folder, const std::string& uuid) {
  std::error_code ignored;
  fs::remove(folder / uuid, ignored);
}

std::optional<std::string> FindQuarantine(const fs::path& folder, const char* visible) {
  // The first of a list is the one that is used.
  std::string_view chosen = visible == nullptr ? "" : visible;
  chosen = chosen.substr(0, chosen.find(','));
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const std::string uuid = entry.path().filename().string();
    if (!uuid.starts_with("GPU-")) continue;  // a file half written
    if (chosen.starts_with("GPU-") && !uuid.starts_with(chosen)) continue;
    std::string why = ReadFile(entry.path(), kNoteBytesMax).value_or("");
    while (!why.empty() && why.back() == '\n') why.pop_back();
    return fmt::format(
        "{0} is under quarantine: {1}. Reset it, then run CUDA_VISIBLE_DEVICES={0} assay doctor "
        "--device cuda, which lifts the quarantine where it finds the GPU well; or choose another "
        "with CUDA_VISIBLE_DEVICES=GPU-...",
        uuid, why);
  }
  return std::nullopt;
}

}  // namespace assay
