// Counts a kernel's instructions in nvdisasm's listing: static counts, not runs. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

// Returns the kernel whose section begins on this line of a listing; empty: none does.
std::string_view KernelOnLine(std::string_view line);

// `/*0060*/ @!P0 LDG.E.128 R4, [R2.64] ;` in its parts.
struct ListedInstruction {
  std::string_view address;   // "0060"
  std::string_view guard;     // "@!P0"; empty: it runs in any case
  std::string_view name;      // "LDG.E.128"
  std::string_view operands;  // "R4, [R2.64]"
};
// nullopt: the line has no instruction, or one that only fills a kernel's end.
std::optional<ListedInstruction> InstructionOnLine(std::string_view line);

// Returns the kind of an instruction: "matrix" for "HGMMA.64x128x16.F32.BF16". Source: the CUDA
// Binary Utilities' tables of instruction sets, Ampere to Blackwell.
std::string_view InstructionKind(std::string_view instruction);

}  // namespace assay
