// Assigns master slots to batches of values. Each block of calls takes a batch. Drawing a new one
// takes longer than all measured calls, so batches serve process after process. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace assay {

struct ValueBatch {
  std::vector<uint32_t> masters;  // adjacent slots, in any order
  bool seen = false;              // by the present process
  uint64_t fill = 0;              // Oracle::fill_number of the first master; 0: not filled
  uint32_t first() const { return *std::min_element(masters.begin(), masters.end()); }
};

class ValueBatches {
 public:
  // Uses the master slots [first, first + capacity). If there are enough, small batches have their
  // own room, as they would otherwise displace large ones.
  ValueBatches(uint32_t first, uint32_t capacity);
  // The largest size of a batch.
  uint32_t batch_max() const { return rooms_.back().capacity; }

  // Begins a process, which has seen no batch. The order of batches differs from process to
  // process.
  void BeginProcess(std::mt19937_64& random);
  // Returns the smallest batch with `count` to 2 `count` values that the process has not seen, or
  // with `seen_too` any; nullptr: none. Sizes vary as candidates differ in the length of their
  // blocks.
  ValueBatch* Find(uint32_t count, bool seen_too);
  // Returns any batch of such a size that the process has seen; nullptr: none.
  ValueBatch* FindSeen(uint32_t count, std::mt19937_64& random);
  // Returns a batch of `count` values or more to be filled anew: a new one if there is room,
  // otherwise a seen one, in turn; otherwise empties the room and starts again. Call it if Find
  // returns nullptr. Valid until the next call. Needs count <= batch_max().
  ValueBatch& Renew(uint32_t count);
  // Forgets what all of them hold.
  void Clear();

 private:
  struct Room {
    uint32_t first = 0, capacity = 0;
    uint32_t placed = 0;  // masters that belong to batches
    std::vector<ValueBatch> batches;
  };
  Room& RoomFor(uint32_t count);
  static bool Fits(const ValueBatch& batch, uint32_t count);
  static ValueBatch* Smallest(Room& room, uint32_t count, bool seen_too);

  std::vector<Room> rooms_;  // by the size of their batches
};

}  // namespace assay
