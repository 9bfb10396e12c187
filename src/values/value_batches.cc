#include "values/value_batches.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace assay {
namespace {

// Single calls, and the first blocks of a pair.
constexpr uint32_t kSmallBatch = 16;
// What they get where that is no more than an eighth.
constexpr uint32_t kSmallRoom = 64, kSmallRoomShare = 8;
// A batch may be taken for one so many times smaller.
constexpr size_t kOversize = 2;

}  // namespace

ValueBatches::ValueBatches(uint32_t first, uint32_t capacity) {
  const uint32_t small = capacity >= kSmallRoom * kSmallRoomShare ? kSmallRoom : 0;
  if (small > 0) rooms_.push_back({first, small, 0, {}});
  rooms_.push_back({first + small, capacity - small, 0, {}});
}

ValueBatches::Room& ValueBatches::RoomFor(uint32_t count) {
  return count <= kSmallBatch ? rooms_.front() : rooms_.back();
}

void ValueBatches::BeginProcess(std::mt19937_64& random) {
  for (Room& room : rooms_) {
    std::shuffle(room.batches.begin(), room.batches.end(), random);
    for (ValueBatch& batch : room.batches) batch.seen = false;
  }
}

bool ValueBatches::Fits(const ValueBatch& batch, uint32_t count) {
  return batch.masters.size() >= count && batch.masters.size() <= kOversize * count;
}

ValueBatch* ValueBatches::Smallest(Room& room, uint32_t count, bool seen_too) {
  ValueBatch* found = nullptr;
  for (ValueBatch& batch : room.batches) {
    const bool smaller = found == nullptr || batch.masters.size() < found->masters.size();
    if (Fits(batch, count) && smaller && (seen_too || !batch.seen)) found = &batch;
  }
  return found;
}

ValueBatch* ValueBatches::Find(uint32_t count, bool seen_too) {
  return Smallest(RoomFor(count), count, seen_too);
}

ValueBatch* ValueBatches::FindSeen(uint32_t count, std::mt19937_64& random) {
  std::vector<ValueBatch*> seen;
  for (ValueBatch& batch : RoomFor(count).batches)
    if (batch.seen && Fits(batch, count)) seen.push_back(&batch);
  return seen.empty() ? nullptr : seen[random() % seen.size()];
}

ValueBatch& ValueBatches::Renew(uint32_t count) {
  Room& room = RoomFor(count);
  ASSAY_CHECK(count <= room.capacity);
  if (room.placed + count > room.capacity) {
    if (ValueBatch* full = Smallest(room, count, true)) {
      // The next one is another.
      const auto at = room.batches.begin() + (full - room.batches.data());
      std::rotate(at, at + 1, room.batches.end());
      return room.batches.back();
    }
    room.batches.clear();
    room.placed = 0;
  }
  ValueBatch& batch = room.batches.emplace_back();
  batch.masters.resize(count);
  std::iota(batch.masters.begin(), batch.masters.end(), room.first + room.placed);
  room.placed += count;
  return batch;
}

void ValueBatches::Clear() {
  for (Room& room : rooms_) {
    room.batches.clear();
    room.placed = 0;
  }
}

}  // namespace assay
