// Short calls on a GPU: launching takes longer than the work of some, and a part of the time of
// others. They are replayed as CUDA graphs (docs/protocol.md). Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// Whether calls are so short that launches may bind them: one of PyTorch's takes some microseconds,
// and a call has some tens of them at most.
bool MayBeBoundByLaunches(const LaunchedTimes& launched);

// Whether what launching adds to a block of calls counts: some 20 us, and 1.4 us for each call of
// one launch (bench/results/h200/clock_launched.jsonl: 24.1 us for 22.0 us by CUPTI in blocks of 32
// calls, 138 us for 133 us in blocks of 6).
bool LaunchingCounts(const LaunchedTimes& launched);

// What is to be said beside times that are replays'. `opponent`: "reference" or "opponent".
std::string NoteOfReplays(const LaunchedTimes& launched, const std::string& opponent);

}  // namespace assay
