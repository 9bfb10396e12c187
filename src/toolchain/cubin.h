// What a kernel for a GPU was compiled to, read from the machine code itself: what a compiler
// prints beside it could be the candidate's own words (#pragma message). Images are made beside a
// stranger's source: every offset is checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct CompiledKernel {
  std::string name;          // as the image has it: mangled
  int registers = 0;         // a thread
  int64_t stack_bytes = 0;   // of local memory a thread: spilled registers and arrays
  int64_t shared_bytes = 0;  // a block, without what is asked for at the launch or CUDA reserves
};

// The kernels of a cubin (an ELF file of CUDA's), by their order there. Sources: section names and
// .nv.info attributes as ptxas 11.8 and 13.0 write them, compared with what `ptxas -v` prints.
// Empty where the bytes are no cubin, or a damaged one.
std::vector<CompiledKernel> ReadCubin(std::string_view image);

// The cubins inside of another file, such as a shared library that nvcc made; those that are
// compressed are not seen.
std::vector<std::string_view> FindCubins(std::string_view file);

// A kernel's name as people write it: "softmax<256>", without namespaces' hashes or parameters; a
// name that is not mangled as it is, and of a very long one "at::native::copy_kernel<...>".
std::string KernelDisplayName(const std::string& name);

}  // namespace assay
