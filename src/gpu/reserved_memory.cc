#include "gpu/reserved_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/trace.h"

namespace assay {
namespace {

constexpr int kPlaces = 128;  // all within one page, which is written whole
constexpr int kLookMs = 20, kGuardMs = 1;
constexpr double kGuardS = 10, kUnchangedS = 3600, kTellS = 60;
// Memory of a process that has ended comes back within this time.
constexpr double kReturnS = 2;
// Contexts of a judge that waits: its own, and its oracle's with libraries.
constexpr uint64_t kWaitingBytes = uint64_t{1300} << 20;
constexpr uint64_t kLeastPart = 8;

uint64_t Less(uint64_t bytes, uint64_t taken) { return bytes - std::min(bytes, taken); }

struct Entry {
  uint64_t ticket = 0;  // 0: free
  uint64_t bytes = 0;
  uint64_t waits = 0;
  bool operator==(const Entry&) const = default;
};
struct Ledger {
  uint64_t of_others_bytes = 0;  // memory that programs other than judges take
  Entry entries[kPlaces];
};

// The lock of one place, or of all entries (kPlaces). It bars nobody from the file's content.
struct flock LockOf(short type, int place) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = place;
  lock.l_len = 1;
  return lock;
}

bool SetLock(int file, short type, int place) {
  const struct flock lock = LockOf(type, place);
  return ::fcntl(file, F_OFD_SETLK, &lock) == 0;
}

// Whether another open file holds it.
bool IsLocked(int file, int place) {
  struct flock lock = LockOf(F_WRLCK, place);
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

// Owns the right to read and write entries; false without it. Others hold it for microseconds.
class Guard {
 public:
  explicit Guard(int file) : file_(file) {
    const Deadline deadline = Deadline::AfterSeconds(kGuardS);
    while (!(held_ = SetLock(file_, F_WRLCK, kPlaces)) && errno == EAGAIN && !deadline.Expired())
      ::poll(nullptr, 0, kGuardMs);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (held_) SetLock(file_, F_UNLCK, kPlaces);
  }
  explicit operator bool() const { return held_; }

 private:
  const int file_;
  bool held_ = false;
};

// Reads the entries, without those whose processes are gone. `own`: whose lock this open file has.
Ledger ReadLedger(int file, int own) {
  Ledger ledger;
  [[maybe_unused]] const ssize_t size = ::pread(file, &ledger, sizeof ledger, 0);
  for (int place = 0; place < kPlaces; ++place)
    if (ledger.entries[place].ticket != 0 && place != own && !IsLocked(file, place))
      ledger.entries[place] = {};
  return ledger;
}

bool WriteLedger(int file, const Ledger& ledger) {
  return ::pwrite(file, &ledger, sizeof ledger, 0) == static_cast<ssize_t>(sizeof ledger);
}

// The memory for one of the entries.
struct Share {
  bool first = true;        // nobody waits longer
  uint64_t held_bytes = 0;  // by other judges, without the contexts of those that wait
  uint64_t least_bytes = 0, most_bytes = 0, available_bytes = 0;
};

Share ShareOf(const Ledger& ledger, int own, const MemoryOfGpu& gpu, const MemoryWish& wish) {
  Share share;
  uint64_t entered_bytes = 0;
  for (int place = 0; place < kPlaces; ++place) {
    const Entry& entry = ledger.entries[place];
    if (entry.ticket == 0 || place == own) continue;
    entered_bytes += entry.bytes;
    if (entry.waits == 0) share.held_bytes += entry.bytes;
    share.first &= entry.waits == 0 || entry.ticket > ledger.entries[own].ticket;
  }
  const uint64_t usable = Less(gpu.total_bytes, ledger.of_others_bytes);
  const auto sharers = static_cast<uint64_t>(std::max(1, wish.sharers));
  share.least_bytes = std::max(wish.least_bytes, usable / (sharers > 1 ? sharers : kLeastPart));
  share.most_bytes = std::max(share.least_bytes, usable / sharers);
  share.available_bytes = Less(usable, entered_bytes);
  return share;
}

// Looks at the GPU. What others take is seen while no judge holds memory; later it is known to be
// no more than all that is taken.
Share Look(Ledger* ledger, int own, const MemoryOfGpu& gpu, const MemoryWish& wish) {
  const uint64_t free_bytes = gpu.free_bytes(), taken = Less(gpu.total_bytes, free_bytes);
  const uint64_t held_bytes = ShareOf(*ledger, own, gpu, wish).held_bytes;
  uint64_t contexts_bytes = 0;
  for (int place = 0; place < kPlaces; ++place)
    if (place != own && ledger->entries[place].waits != 0)
      contexts_bytes += ledger->entries[place].bytes;
  ledger->of_others_bytes =
      held_bytes == 0 ? Less(taken, contexts_bytes) : std::min(ledger->of_others_bytes, taken);
  Share share = ShareOf(*ledger, own, gpu, wish);
  share.available_bytes = std::min(share.available_bytes, free_bytes);
  return share;
}

Error TooLittle(const Share& share) {
  return {ErrorKind::kUnjudged,
          fmt::format("{:.1f} GB of the GPU's memory are needed, and {:.1f} GB are there",
                      static_cast<double>(share.least_bytes) / 1e9,
                      static_cast<double>(share.available_bytes) / 1e9),
          ErrorCode::kTooLarge};
}

// Enters the queue. Returns the place of the entry; nullopt: the file cannot be written, or is
// full.
std::optional<int> Enter(int file, bool waits) {
  const Guard guard(file);
  if (!guard) return std::nullopt;
  Ledger ledger = ReadLedger(file, -1);
  uint64_t ticket = 1;
  for (const Entry& entry : ledger.entries) ticket = std::max(ticket, entry.ticket + 1);
  for (int place = 0; place < kPlaces; ++place) {
    if (ledger.entries[place].ticket != 0 || !SetLock(file, F_WRLCK, place)) continue;
    ledger.entries[place] = {ticket, waits ? kWaitingBytes : 0, 1};
    if (WriteLedger(file, ledger)) return place;
    SetLock(file, F_UNLCK, place);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

ReservedMemory& ReservedMemory::operator=(ReservedMemory&& other) noexcept {
  GiveBack();
  file_ = std::move(other.file_);
  place_ = other.place_;
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void ReservedMemory::GiveBack() {
  Shrink(0);
  // A process that was forked may have the file open, too.
  if (file_) SetLock(file_.get(), F_UNLCK, place_);
  file_.Close();
}

void ReservedMemory::Shrink(uint64_t bytes) {
  bytes_ = std::min(bytes_, bytes);
  if (!file_) return;
  const Guard guard(file_.get());
  if (!guard) return;
  Ledger ledger = ReadLedger(file_.get(), place_);
  Entry& own = ledger.entries[place_];
  own.bytes = bytes_;
  if (bytes_ == 0) own = {};
  WriteLedger(file_.get(), ledger);
}

bool ReservedMemory::IsWanted() const {
  if (!file_) return false;
  const Guard guard(file_.get());
  if (!guard) return false;
  const Ledger ledger = ReadLedger(file_.get(), place_);
  return std::any_of(ledger.entries, ledger.entries + kPlaces,
                     [](const Entry& entry) { return entry.ticket != 0 && entry.waits != 0; });
}

Result<ReservedMemory> ReservedMemory::Reserve(const MemoryOfGpu& gpu, const MemoryWish& wish,
                                               StopToken stop) {
  const Span span("wait for the GPU's memory");  // as bench/trace_summary.py knows it
  std::error_code code;
  std::filesystem::create_directories(gpu.folder, code);
  ReservedMemory memory;
  memory.file_ = UniqueFd(
      ::open((gpu.folder / (gpu.uuid + ".memory")).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const auto place = memory.file_ ? Enter(memory.file_.get(), wish.waits) : std::nullopt;
  if (!place) {
    memory.file_.Close();
    Ledger empty;
    const Share share = Look(&empty, -1, gpu, wish);
    if (share.available_bytes < share.least_bytes) return std::unexpected(TooLittle(share));
    memory.bytes_ = std::min(share.available_bytes, share.most_bytes);
    return memory;
  }
  memory.place_ = *place;
  ASSAY_RETURN_IF_ERROR(memory.Wait(gpu, wish, stop));
  return memory;
}

Result<void> ReservedMemory::Wait(const MemoryOfGpu& gpu, const MemoryWish& wish, StopToken stop) {
  Ledger before;
  Deadline unchanged = Deadline::AfterSeconds(kUnchangedS), tell = Deadline::AfterSeconds(0);
  Deadline returned = Deadline::AfterSeconds(kReturnS);
  bool looked = false;
  while (true) {
    Share share;
    if (const Guard guard(file_.get()); guard) {
      Ledger ledger = ReadLedger(file_.get(), place_);
      if (!std::ranges::equal(ledger.entries, before.entries))
        unchanged = Deadline::AfterSeconds(kUnchangedS);
      before = ledger;
      share = ShareOf(ledger, place_, gpu, wish);
      const bool turn = share.first || !wish.waits;
      // Without need nobody asks the driver, beside another's measurement.
      const bool may_fit = share.held_bytes == 0 || share.least_bytes <= share.available_bytes;
      if (!std::exchange(looked, true) || (turn && may_fit))
        share = Look(&ledger, place_, gpu, wish);
      const bool fits = turn && share.least_bytes <= share.available_bytes;
      if (fits) {
        bytes_ = std::min(share.available_bytes, share.most_bytes);
        ledger.entries[place_].bytes = bytes_;
        ledger.entries[place_].waits = 0;
      }
      if (fits || ledger.of_others_bytes != before.of_others_bytes)
        WriteLedger(file_.get(), ledger);
      if (fits) return {};
      if (!wish.waits) return std::unexpected(TooLittle(share));
      if (!turn || share.held_bytes > 0)
        returned = Deadline::AfterSeconds(kReturnS);
      else if (returned.Expired())
        return std::unexpected(TooLittle(share));
    }
    if (stop.stopped()) return Fail(ErrorKind::kInterrupted, "interrupted");
    if (unchanged.Expired())
      return EnvironmentError(
          "other judges have had the GPU's memory for an hour: wait for them, or end them");
    if (tell.Expired()) {
      wish.on_wait(share.least_bytes);
      tell = Deadline::AfterSeconds(kTellS);
    }
    ::poll(nullptr, 0, kLookMs);
  }
}

}  // namespace assay
