// Counts a kernel's instructions in nvdisasm's listing: static counts, not runs. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace assay {

struct InstructionMix {
  // By kind: "matrix", "float64", "float32", "float16", "special", "conversion", "integer",
  // "global_load", "global_store", "shared", "local", "async_copy", "atomic", "barrier", "branch",
  // "other". Kinds without instructions are absent.
  std::map<std::string, int64_t> counts;
  int widest_load_bytes = 0;  // of global memory, per thread and instruction; 0: no such load
};

// Reads the listing of `nvdisasm -c`; keys are the kernels' names there. A function that is not
// inlined counts for the kernel in whose section it stands.
std::map<std::string, InstructionMix> ParseListing(std::string_view listing);

// Returns the kind of an instruction: "matrix" for "HGMMA.64x128x16.F32.BF16". Source: the CUDA
// Binary Utilities' tables of instruction sets, Ampere to Blackwell.
std::string_view InstructionKind(std::string_view instruction);

}  // namespace assay
