#include "gpu/turns.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <map>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/trace.h"

namespace assay {
namespace {

constexpr double kWaitS = 600;
constexpr int kLookMs = 2;
constexpr int kLane = 1;  // of a trace; no thread of a judge has this number

UniqueFd OpenLock(const std::filesystem::path& path) {
  return UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

Result<void> Lock(const UniqueFd& file, int operation, const Deadline& deadline, StopToken stop) {
  while (::flock(file.get(), operation | LOCK_NB) != 0) {
    if (stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
    if (deadline.Expired())
      return EnvironmentError(
          "another judge has had the GPU for ten minutes: wait for it, or end it");
    ::poll(nullptr, 0, kLookMs);
  }
  return {};
}

}  // namespace

GpuTurns::GpuTurns(const std::filesystem::path& folder, const std::string& uuid) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  queue_ = OpenLock(folder / (uuid + ".queue"));
  use_ = OpenLock(folder / (uuid + ".use"));
}

std::shared_ptr<GpuTurns> GpuTurns::Of(const Gpu* gpu) {
  if (gpu == nullptr) return nullptr;
  const std::string& uuid = gpu->facts().uuid;
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<GpuTurns>> all;
  const std::lock_guard lock(mutex);
  std::shared_ptr<GpuTurns>& turns = all[uuid];
  if (!turns) turns = std::make_shared<GpuTurns>(StateFolder() / "turns", uuid);
  return turns;
}

Result<void> GpuTurns::Take(Held wanted, StopToken stop) {
  const int64_t begin_ns = MonotonicNs();
  if (queue_ && use_) {
    const Deadline deadline = Deadline::AfterSeconds(kWaitS);
    const int operation = wanted == Held::kAll ? LOCK_EX : LOCK_SH;
    ASSAY_RETURN_IF_ERROR(Lock(queue_, operation, deadline, stop));
    const auto taken = Lock(use_, operation, deadline, stop);
    ::flock(queue_.get(), LOCK_UN);
    ASSAY_RETURN_IF_ERROR(taken);
  }
  held_ = wanted;
  held_since_ns_ = MonotonicNs();
  AddSpan(wanted == Held::kAll ? "wait to have the GPU alone" : "wait to share the GPU", begin_ns,
          held_since_ns_, kLane);
  return {};
}

void GpuTurns::GiveBack() {
  if (held_ != Held::kNothing)
    AddSpan(held_ == Held::kAll ? "have the GPU alone" : "share the GPU", held_since_ns_,
            MonotonicNs(), kLane);
  if (held_ != Held::kNothing && use_) ::flock(use_.get(), LOCK_UN);
  held_ = Held::kNothing;
}

Result<void> GpuTurns::Compute(StopToken stop) {
  const std::lock_guard lock(mutex_);
  if (held_ == Held::kNothing) ASSAY_RETURN_IF_ERROR(Take(Held::kShare, stop));
  ++computing_;
  return {};
}

void GpuTurns::Leave() {
  const std::lock_guard lock(mutex_);
  ASSAY_CHECK(computing_ > 0);
  if (--computing_ == 0) GiveBack();
}

Result<void> GpuTurns::Measure(StopToken stop) {
  const std::lock_guard lock(mutex_);
  ASSAY_CHECK(computing_ > 0);
  if (held_ == Held::kAll) return {};
  GiveBack();
  return Take(Held::kAll, stop);
}

Result<void> GpuTurns::ShareAgain(StopToken stop) {
  const std::lock_guard lock(mutex_);
  if (held_ != Held::kAll) return {};
  GiveBack();
  return Take(Held::kShare, stop);
}

void GpuTurns::Rest() {
  const std::lock_guard lock(mutex_);
  GiveBack();
}

Result<void> GpuTurns::EndRest(StopToken stop) {
  const std::lock_guard lock(mutex_);
  if (computing_ == 0 || held_ != Held::kNothing) return {};
  return Take(Held::kShare, stop);
}

Result<GpuTurn> GpuTurn::Begin(const Gpu* gpu, StopToken stop) {
  std::shared_ptr<GpuTurns> turns = GpuTurns::Of(gpu);
  if (turns) ASSAY_RETURN_IF_ERROR(turns->Compute(stop));
  return GpuTurn(std::move(turns));
}

}  // namespace assay
