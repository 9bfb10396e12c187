// Decides which calls on a GPU are replayed as CUDA graphs (docs/protocol.md): short ones, whose
// launches take a large part of their time, or longer than their work. Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// Returns true if calls are so short that launches may bound them: a PyTorch launch takes some
// microseconds, and a call has at most some tens of launches.
bool MayBeBoundByLaunches(const LaunchedTimes& launched);

// Returns true if launching adds a significant time to a block of calls: about 20 us, and 1.4 us
// for each call of one launch (bench/results/h200/clock_launched.jsonl: 24.1 us for 22.0 us by
// CUPTI in blocks of 32 calls, 138 us for 133 us in blocks of 6).
bool LaunchingCounts(const LaunchedTimes& launched);

// Returns the note beside times of replays. `opponent`: "reference" or "opponent".
std::string NoteOfReplays(const LaunchedTimes& launched, const std::string& opponent);

}  // namespace assay
