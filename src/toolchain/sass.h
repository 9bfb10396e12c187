// Which instructions a kernel consists of, from nvdisasm's listing: a static count, not how often
// each of them runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace assay {

struct InstructionMix {
  // By kind: "matrix", "float64", "float32", "float16", "special", "conversion", "integer",
  // "global_load", "global_store", "shared", "local", "async_copy", "atomic", "barrier", "branch",
  // "other". No kind stands there with 0.
  std::map<std::string, int64_t> counts;
  int widest_load_bytes = 0;  // of global memory, a thread and instruction; 0: none of its own
};

// By the kernel's name, as the listing of `nvdisasm -c` has it; instructions of functions that were
// not inlined count for the kernel whose section they stand in.
std::map<std::string, InstructionMix> ParseListing(std::string_view listing);

// "matrix" for "HGMMA.64x128x16.F32.BF16"; source: the CUDA Binary Utilities' tables of instruction
// sets, Ampere to Blackwell.
std::string_view InstructionKind(std::string_view instruction);

}  // namespace assay
