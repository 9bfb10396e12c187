// The loops of a function, by its jumps. Pure.
//
// Theory of operation. Jumps divide the code into blocks. A block dominates another if every way
// from the entry to the other leads through it. An edge to a block that dominates its own begin
// closes a natural loop: all blocks that reach the edge without passing the loop's head. A jump
// back alone closes none: compilers put blocks that rarely run behind the others, and these jump
// back to where they came from.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace assay {

// An instruction as its function's flow sees it.
struct FlowStep {
  std::optional<size_t> target;  // where it may jump to, an index of the function
  bool falls_through = true;     // the next one may follow
};

// A natural loop that holds no other: indices of its instructions in order, without those of blocks
// that lie behind both its head and its end, which rarely run.
using FlowLoop = std::vector<size_t>;

// Returns the innermost loops of a function that is entered at its first instruction. Targets must
// lie within it.
std::vector<FlowLoop> InnermostLoops(const std::vector<FlowStep>& steps);

}  // namespace assay
