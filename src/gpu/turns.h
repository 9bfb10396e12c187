// Turns at a GPU that several judges of a user share: many may compute at once, or one alone may
// measure. Locks are files of the GPU below the state folder, held with flock(): they go with the
// process that holds them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "base/stop_token.h"
#include "base/unique_fd.h"
#include "gpu/gpu.h"

namespace assay {

// This process's part in the turns. Any thread may compute; one thread at a time measures, while no
// other one computes.
class GpuTurns {
 public:
  // Locks in `folder`, by the GPU's UUID. If they cannot be made, every turn comes at once.
  GpuTurns(const std::filesystem::path& folder, const std::string& uuid);
  GpuTurns(const GpuTurns&) = delete;
  GpuTurns& operator=(const GpuTurns&) = delete;

  // The turns of a GPU, one object a process; null without one.
  static std::shared_ptr<GpuTurns> Of(const Gpu* gpu);

  // Begins to compute: waits while another process measures. Calls may nest. Errors: kInterrupted;
  // kEnvironment after ten minutes.
  Result<void> Compute(StopToken stop);
  // Ends what one Compute() began.
  void Leave();
  // Between Compute() and Leave(): waits until no other process computes, and keeps them out until
  // ShareAgain() or the last Leave(). Does nothing if it measures already. Errors as Compute's;
  // this process then computes on.
  Result<void> Measure(StopToken stop);
  // Lets others compute again beside this process. Does nothing if it does not measure. Errors as
  // Compute's.
  Result<void> ShareAgain(StopToken stop);
  // Gives the turn away while this process does nothing on the GPU, and takes it back.
  void Rest();
  Result<void> EndRest(StopToken stop);

 private:
  enum class Held { kNothing, kShare, kAll };
  Result<void> Take(Held wanted, StopToken stop);
  void GiveBack();

  std::mutex mutex_;
  // A process that waits for `use_` holds `queue_`: so a measurement comes to its turn although
  // others compute one after the other.
  UniqueFd queue_, use_;
  int computing_ = 0;
  Held held_ = Held::kNothing;
  int64_t held_since_ns_ = 0;  // of a turn that is held
};

// Computes on the GPU while it lives.
class GpuTurn {
 public:
  // `gpu`: null where there is none. Errors as GpuTurns::Compute's.
  static Result<GpuTurn> Begin(const Gpu* gpu, StopToken stop);
  GpuTurn(GpuTurn&&) noexcept = default;
  GpuTurn& operator=(GpuTurn&&) = delete;
  ~GpuTurn() {
    if (turns_) turns_->Leave();
  }

 private:
  explicit GpuTurn(std::shared_ptr<GpuTurns> turns) : turns_(std::move(turns)) {}
  std::shared_ptr<GpuTurns> turns_;
};

}  // namespace assay
