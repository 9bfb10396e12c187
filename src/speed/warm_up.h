// All that comes before the blocks of a pair that count: both hosts get warm, blocks get long
// enough, and blocks are replays or not.
#pragma once

#include <functional>

#include "speed/gate_parts.h"

namespace assay {

// The way in which a pair, or a part of it, ended.
enum class PairEnd {
  kGood,
  kWrong,       // a call of the candidate was wrong: the ledger's checks say how
  kTooShort,    // its blocks were too short to count: the next ones have more calls
  kStartsOver,  // no block is replayed from now on, and all pairs are forgotten
};

// Warms up both sides. `rest` is called once they are warm, before blocks are timed for replays.
// Returns kGood, kWrong or kStartsOver. Errors: trouble, which says whose it is.
HostResult<PairEnd> WarmUpPair(GateParts& parts, Side& early, Side& late,
                               const std::function<void()>& rest);

// Returns true if blocks of such calls are too short, and longer ones can be had. Then the next
// blocks are longer: hosts must enter them anew.
bool MakeLonger(GateParts& parts, const CallTimes& times);

// Sets the length of the next blocks.
void SetLength(GateParts& parts, const BlockLength& length);

// Decides whether the blocks of a pair are replays, by exchanges that do not count. Returns as
// WarmUpPair.
HostResult<PairEnd> SettleReplays(GateParts& parts, Side& early, Side& late);

// A host that captured its calls before could not do so again: forgets all pairs, and no block is
// replayed from now on.
PairEnd StartOver(GateParts& parts);

}  // namespace assay
