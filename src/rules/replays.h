// Decides which calls on a GPU are replayed as CUDA graphs (docs/protocol.md): those whose launches
// take a large part of their time, or longer than their work. Pure.
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

// Returns true if longer calls may still be bound by launches: a call of PyTorch's that has
// hundreds of them takes milliseconds to launch. Such calls are tried as replays.
bool LaunchesMayShow(const LaunchedTimes& launched);

// Returns true if a side's calls are faster as replays by over a tenth: then its launches are what
// its time was made of.
bool LaunchesShow(const LaunchedTimes& launched, const LaunchedTimes& replayed);

// Returns the note beside times of calls that launch one by one because they could not be replayed.
// `opponent`: as below.
std::string NoteOfLaunches(const std::string& opponent);

// Returns the note beside times of replays. `opponent`: "reference" or "opponent".
std::string NoteOfReplays(const LaunchedTimes& launched, const std::string& opponent);

}  // namespace assay
