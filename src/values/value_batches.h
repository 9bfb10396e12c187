// Which master slots hold the values of which batch: blocks of calls take a batch each, and drawing
// one anew takes longer than all that is measured. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace assay {

struct ValueBatch {
  std::vector<uint32_t> masters;  // neighbours, in any order
  uint64_t weights = 0;
  std::optional<size_t> probe;  // whose weights these are
  bool seen = false;            // by the process in hand
};

class ValueBatches {
 public:
  // Uses the master slots [first, first + capacity). Small batches have a room of their own where
  // there is enough for all: they would take the place of large ones.
  ValueBatches(uint32_t first, uint32_t capacity);
  // What one batch may have at most.
  uint32_t batch_max() const { return rooms_.back().capacity; }

  // A process begins that has seen none; which batch comes when differs from process to process.
  void BeginProcess(std::mt19937_64& random);
  // The smallest batch of `count` values and up to twice as many that the process has not seen, or
  // that it has where `seen_too`; nullptr: none. Candidates may differ in the length of their
  // blocks.
  ValueBatch* Find(uint32_t count, bool seen_too);
  // One of `count` values or more to be filled anew: a new one, or one that was seen, another one
  // each time; where there is neither, its room is shared out again. Call it where Find has
  // nothing. Valid until the next call. count <= batch_max().
  ValueBatch& Renew(uint32_t count);
  // How many values each batch has, small batches first.
  std::vector<uint32_t> Sizes() const;
  // Forgets what all of them hold.
  void Clear();

 private:
  struct Room {
    uint32_t first = 0, capacity = 0;
    uint32_t placed = 0;  // masters that belong to batches
    std::vector<ValueBatch> batches;
  };
  Room& RoomFor(uint32_t count);
  static ValueBatch* Smallest(Room& room, uint32_t count, bool seen_too);

  std::vector<Room> rooms_;  // by the size of their batches
};

}  // namespace assay
