// Finds the loop in which a native candidate most likely spends its time in objdump's listing of
// its machine code (x86-64), and counts what that loop is made of. Static counts, not runs. Pure.
//
// Theory of operation. Of the innermost loops (flow_graph.h) the one with the most work is taken:
// arithmetic counts one, on vectors two, a division five, a call twenty, but a call that allocates
// or copies nothing. A loop on scalars that shares lines with one on vectors does the last
// elements, and is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct NativeLoop {
  int first_line = 0, last_line = 0;  // of the candidate's source; 0: not known
  int vector_bits = 0;                // of its widest arithmetic on vectors; 0: it has none
  int64_t instructions = 0;
  // Arithmetic of floating point, by its operands; that of integers on vectors, too.
  int64_t on_vectors = 0, on_scalars = 0;
  int64_t divisions = 0;  // of these, divisions and square roots
  int64_t spills = 0;     // loads and stores on the stack
  int64_t gathers = 0;    // loads of vectors, each element from its own address
  // Each function once: "expf". Without those that find thread-local memory or never return.
  std::vector<std::string> calls;
};

struct NativeCode {
  std::optional<NativeLoop> loop;  // nullopt: no loop with arithmetic of floating point or calls
  bool starts_threads = false;     // it calls OpenMP, or creates threads
  int machine_vector_bits = 0;     // of the processor's widest vectors; 0: not known
};

// Reads the listing of `objdump -d -l -C -M intel --no-show-raw-insn`. `source`: the name under
// which the listing has the candidate's file.
NativeCode ReadNativeListing(std::string_view listing, std::string_view source);

}  // namespace assay
