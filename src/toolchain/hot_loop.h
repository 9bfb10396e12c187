// Finds the loop in which a kernel spends its time in nvdisasm's listing, and says what each line
// is for. Pure.
//
// Theory of operation. Branches and labels of the listing make a graph of basic blocks. A branch
// back to a block that every way to it has passed closes a natural loop: that block, and all from
// which the branch is reached without it. So a wait whose slow half lies at the kernel's end
// belongs to the loop around it. An instruction counts for the innermost loop that has it, and the
// loop with the most products of matrices is the hot one; without such products, the one with the
// most arithmetic of floating point, or else with the most loads and stores of global memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "toolchain/sass.h"

namespace assay {

struct HotLoop {
  std::string kernel;                    // its name in the listing
  size_t kernel_instructions = 0;        // of the whole kernel
  std::string_view chosen_by;            // a mark, as "multiply"; empty: there is no such loop
  std::vector<ListedInstruction> lines;  // of the loop in order; else of the whole kernel
  std::vector<std::pair<std::string_view, int64_t>> marks;  // how many lines have each, most first
};

// Returns one for each kernel, in order. The lines point into `listing`.
std::vector<HotLoop> FindHotLoops(std::string_view listing);
// The same with all lines of each kernel.
std::vector<HotLoop> WholeKernels(std::string_view listing);

// What an instruction is for: "multiply" (matrices), "arithmetic", "special" (powers, reciprocals),
// "copy" (asynchronous, into or out of shared memory), "load", "store", "atomic", "shared", "spill"
// (a thread's own memory), "signal" and "wait" (barriers, and groups of copies or products that are
// under way), or empty: integers, moves and branches.
std::string_view MarkOf(std::string_view instruction);

}  // namespace assay
