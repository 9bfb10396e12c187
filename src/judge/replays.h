// Calls on a GPU whose launches take longer than their work: in a row of them one would time
// launches. They are replayed as CUDA graphs (docs/protocol.md). Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// Whether calls are so short that launches may bind them: one of PyTorch's takes some microseconds,
// and a call has some tens of them at most.
bool MayBeBoundByLaunches(const LaunchedTimes& launched);

// Whether they do bind one side: its calls take a tenth less as a graph. Blocks of calls that
// PyTorch launches one by one are off by 4 to 6% on average then, others by less than 1%
// (bench/results/h200/blocks_small.jsonl).
bool LaunchesBind(const LaunchedTimes& launched, const LaunchedTimes& replayed);

// What is to be said beside times that are replays'. `opponent`: "reference" or "opponent".
std::string NoteOfReplays(const LaunchedTimes& launched, const std::string& opponent);

}  // namespace assay
