// Exchanges: both sides of a pair run a block each, one after the other, each on values of its own.
//
// Theory of operation. Before each block the slots are filled with its side's values and weights,
// its outputs are poisoned, and inputs and weights leave the caches. After it the outputs are
// compared, or else read: the next block, of whichever side, must find the same caches. An exchange
// starts again on new values if a block was void, if results of a side were written over by its
// later calls (they are copied from then on), or if other processes, or work that the other side
// left on the device, disturbed a measured block and repeats are left.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "speed/block_length.h"
#include "speed/copy_policy.h"
#include "speed/inputs.h"
#include "speed/ledger.h"
#include "speed/replay_policy.h"
#include "speed/side.h"

namespace assay {

// The use of a block.
struct BlockUse {
  bool looked_at = false;        // the opponent's outputs are compared after it
  PairBlocks* blocks = nullptr;  // set: the block is measured, and added here
};

// The outcome of a block.
struct BlockTime {
  double call_ns = 0;      // of one call
  int64_t look_ns = 0;     // of the judge's look at the outputs, on a device
  int64_t woken_ns = 0;    // from waking to ready, as far as call_ns does not hold it
  bool disturbed = false;  // by other processes
};

struct ExchangeTerms {
  uint32_t calls = 1, slots = 2;
  BlockUse use;  // of both blocks
};

struct ExchangeTimes {
  CallTimes call;  // of each side
  bool disturbed = false;
};

// Returns `calls` of the slots [0, slots), in random order.
std::vector<uint32_t> RandomOrder(size_t slots, uint32_t calls, std::mt19937_64& random);

// All arguments of the constructor outlive it.
class Exchange {
 public:
  Exchange(Inputs& inputs, CopyPolicy& copies, ReplayPolicy& replays, Ledger& ledger,
           std::mt19937_64& random)
      : inputs_(inputs), copies_(copies), replays_(replays), ledger_(ledger), random_(random) {}

  // Fills slots for each side and runs it on them. Returns nullopt if a call of the candidate was
  // wrong: the ledger's checks say how. Errors: trouble, which says whose it is.
  HostResult<std::optional<ExchangeTimes>> Run(Side& first, Side& second,
                                               const ExchangeTerms& terms);

  // Run one block on the present inputs. RunBlock poisons and flushes first; RunPrepared takes
  // outputs and caches as they are. Errors: the host's trouble; kVoid, too, if results must be
  // copied that it left. Then they are copied from now on.
  HostResult<BlockTime> RunBlock(Side& side, std::span<const uint32_t> order, const BlockUse& use);
  HostResult<BlockTime> RunPrepared(Side& side, std::span<const uint32_t> order,
                                    const BlockUse& use);

  // The calls of a block: the slots in the order they ran, and each of these slots once.
  struct Called {
    std::span<const uint32_t> order, slots;
  };
  // The result of Check(). `copies_now`: the side's results were written over by later calls.
  struct Checked {
    std::optional<CallCheck> wrong;
    bool copies_now = false;
  };
  // Compares the outputs of a block. `learns`: a wrong block is not held against a side that left
  // its results and whose last call is right: later calls wrote over the results of earlier ones.
  // They are copied from now on.
  Checked Check(Side& side, const Called& called, const FilledSlots& filled, bool learns);

 private:
  enum class End { kDone, kWrong, kAgain };
  HostResult<End> RunOnce(Side& first, Side& second, const ExchangeTerms& terms,
                          ExchangeTimes* times);
  HostResult<End> RunSide(Side& side, const ExchangeTerms& terms, ExchangeTimes* times);
  HostResult<End> CheckSide(Side& side, std::span<const uint32_t> order, const FilledSlots& filled,
                            const BlockUse& use);
  bool LostResults(Side& side, std::span<const uint32_t> order, const FilledSlots& filled);
  BlockMode ModeOf(const Side& side, bool looked_at) const;

  Inputs& inputs_;
  CopyPolicy& copies_;
  ReplayPolicy& replays_;
  Ledger& ledger_;
  std::mt19937_64& random_;
};

}  // namespace assay
