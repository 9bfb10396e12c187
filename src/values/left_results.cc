#include "values/left_results.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "base/check.h"
#include "values/slot_layout.h"

namespace assay {
namespace {

constexpr uint64_t kLineBytes = 64;

// How PyTorch's allocator takes memory of a device (CUDACachingAllocator.cpp of 1.13 to 2.11): for
// what is small, or not large, in pieces of a fixed size, that several may share.
constexpr uint64_t kSmallBytes = uint64_t{1} << 20, kSmallPieceBytes = uint64_t{2} << 20;
constexpr uint64_t kLargeBytes = uint64_t{10} << 20, kLargePieceBytes = uint64_t{20} << 20;
constexpr uint64_t kBlockBytes = 512;
// What forward makes on its way, in slots; at most so much, and this share of what all values may
// take; and what is taken in any case.
constexpr uint64_t kSlotsBesides = 8, kBytesBesidesMax = uint64_t{1} << 30, kBesidesShare = 16;
constexpr uint64_t kBytesBesides = uint64_t{64} << 20;

uint64_t RoundedUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// For `count` tensors of a size.
uint64_t AllocatedBytes(uint64_t size_bytes, uint64_t count) {
  if (size_bytes == 0) return 0;
  if (size_bytes >= kLargeBytes) return count * RoundedUp(size_bytes, kSmallPieceBytes);
  const uint64_t piece = size_bytes <= kSmallBytes ? kSmallPieceBytes : kLargePieceBytes;
  const uint64_t in_a_piece = piece / RoundedUp(size_bytes, kBlockBytes);
  return (count + in_a_piece - 1) / in_a_piece * piece;
}

// False: not all of it is there to be read.
bool ReadMemory(pid_t pid, uint64_t address, std::byte* target, uint64_t size_bytes) {
  for (uint64_t done = 0; done < size_bytes;) {
    const iovec there{reinterpret_cast<void*>(address + done), size_bytes - done};
    const iovec here{target + done, size_bytes - done};
    const ssize_t count = ::process_vm_readv(pid, &here, 1, &there, 1, 0);
    if (count <= 0) return false;
    done += static_cast<uint64_t>(count);
  }
  return true;
}

}  // namespace

bool MayReadMemory(pid_t pid) {
  std::byte byte;
  const iovec nowhere{nullptr, 1}, here{&byte, 1};
  return ::process_vm_readv(pid, &here, 1, &nowhere, 1, 0) >= 0 || errno == EFAULT;
}

std::vector<uint64_t> AddressesOfResults(const wire::Report& report, const wire::Plan& plan,
                                         size_t calls) {
  size_t outputs = 0;
  ForEachResult(plan, [&](const wire::ArgumentSpec&) { ++outputs; });
  std::vector<uint64_t> addresses(calls * outputs);
  const size_t told = std::min<size_t>(addresses.size(), wire::kResultsMax);
  for (size_t i = 0; i < told; ++i)
    addresses[i] = __atomic_load_n(&report.result_at[i], __ATOMIC_RELAXED);
  return addresses;
}

LeftResults::LeftResults(std::span<const uint64_t> addresses, const wire::Plan& plan,
                         std::span<const uint32_t> slots) {
  std::vector<const wire::ArgumentSpec*> outputs;
  ForEachResult(plan, [&](const wire::ArgumentSpec& output) { outputs.push_back(&output); });
  ASSAY_CHECK(addresses.size() == slots.size() * outputs.size());
  for (size_t call = 0; call < slots.size(); ++call) {
    const uint32_t slot = slots[call];
    bool lost = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const uint64_t address = addresses[call * outputs.size() + i];
      const uint64_t size_bytes = outputs[i]->size_bytes;
      if (size_bytes == 0) continue;
      if (address == 0 || address + size_bytes < address)
        lost = true;
      else
        pieces_.push_back({slot, address, size_bytes,
                           slot * plan.output_stride + outputs[i]->offset,
                           PoisonByte(outputs[i]->dtype)});
    }
    if (lost) lost_.push_back(slot);
  }
}

bool LeftResults::Overlap() const {
  std::vector<Piece> sorted = pieces_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Piece& a, const Piece& b) { return a.address < b.address; });
  // What reaches furthest so far, and of the other slots.
  uint32_t furthest_slot = 0;
  uint64_t furthest = 0, of_others = 0;
  for (const Piece& piece : sorted) {
    const uint64_t end = piece.address + piece.size_bytes;
    if (piece.address < (piece.slot == furthest_slot ? of_others : furthest)) return true;
    if (piece.slot != furthest_slot && end > furthest) {
      of_others = furthest;
      furthest_slot = piece.slot;
    } else if (piece.slot != furthest_slot) {
      of_others = std::max(of_others, end);
    }
    furthest = std::max(furthest, end);
  }
  return false;
}

bool LeftResults::Translate(uint64_t theirs, uint64_t size_bytes, uint64_t ours) {
  const size_t before = pieces_.size();
  std::erase_if(pieces_, [&](Piece& piece) {
    const uint64_t at = piece.address - theirs;
    const bool inside = piece.address >= theirs && piece.size_bytes <= size_bytes &&
                        at <= size_bytes - piece.size_bytes;
    if (!inside) lost_.push_back(piece.slot);
    piece.address = ours + at;
    return !inside;
  });
  return pieces_.size() == before;
}

void LeftResults::TakeSample(pid_t pid, uint32_t lines, uint64_t seed) {
  std::mt19937_64 random(seed);
  lines_.clear();
  for (uint32_t i = 0; i < lines && !pieces_.empty(); ++i) {
    const Piece& piece = pieces_[random() % pieces_.size()];
    const uint64_t size_bytes = std::min(kLineBytes, piece.size_bytes);
    const uint64_t begin = random() % (piece.size_bytes - size_bytes + 1);
    lines_.push_back({piece.slot, piece.address + begin, size_bytes, i * kLineBytes, piece.poison});
  }
  sample_ = ReadSample(pid);
}

std::vector<std::byte> LeftResults::ReadSample(pid_t pid) const {
  std::vector<std::byte> read(lines_.size() * kLineBytes);
  std::vector<iovec> there, here;
  for (const Piece& line : lines_) {
    there.push_back({reinterpret_cast<void*>(line.address), line.size_bytes});
    here.push_back({read.data() + line.place, line.size_bytes});
  }
  // What follows a line that cannot be read stays zero, both times.
  if (!lines_.empty())
    (void)::process_vm_readv(pid, here.data(), here.size(), there.data(), there.size(), 0);
  return read;
}

bool LeftResults::SampleStillHolds(pid_t pid) const { return ReadSample(pid) == sample_; }

std::vector<uint32_t> LeftResults::Fetch(pid_t pid, std::byte* outputs) const {
  std::vector<uint32_t> lost = lost_;
  for (const Piece& piece : pieces_)
    if (!ReadMemory(pid, piece.address, outputs + piece.place, piece.size_bytes))
      lost.push_back(piece.slot);
  return lost;
}

void LeftResults::Poison(pid_t pid, uint32_t lines, uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<std::byte> poison(lines * kLineBytes);
  std::vector<iovec> there;
  for (const Piece& piece : pieces_) {
    there.clear();
    if (piece.size_bytes <= poison.size())
      there.push_back({reinterpret_cast<void*>(piece.address), piece.size_bytes});
    while (piece.size_bytes > poison.size() && there.size() < lines)
      there.push_back({reinterpret_cast<void*>(
                           piece.address + random() % (piece.size_bytes / kLineBytes) * kLineBytes),
                       kLineBytes});
    std::fill(poison.begin(), poison.end(), piece.poison);
    const iovec here{poison.data(), std::min<uint64_t>(poison.size(), piece.size_bytes)};
    (void)::process_vm_writev(pid, &here, 1, there.data(), there.size(), 0);
  }
}

uint64_t LeftResultsBytes(const wire::Plan& plan, uint32_t slots, uint64_t values_bytes) {
  uint64_t of_slots = 0, besides = 0;
  ForEachResult(plan, [&](const wire::ArgumentSpec& output) {
    of_slots += AllocatedBytes(output.size_bytes, slots);
    besides += AllocatedBytes(output.size_bytes, kSlotsBesides);
  });
  return of_slots + std::min({besides, kBytesBesidesMax, values_bytes / kBesidesShare}) +
         kBytesBesides;
}

}  // namespace assay
