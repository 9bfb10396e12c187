// Reads facts of a GPU's kernels from the machine code itself: a compiler's log could hold the
// candidate's own words (#pragma message). Images are made beside a stranger's source, so every
// offset is checked. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct CompiledKernel {
  std::string name;          // mangled, as in the image
  int registers = 0;         // per thread
  int64_t stack_bytes = 0;   // local memory per thread: spilled registers and arrays
  int64_t shared_bytes = 0;  // per block, without the launch's request and CUDA's reserve
};

// Returns the kernels of a cubin (an ELF file of CUDA's), in its order. Sources: section names and
// .nv.info attributes as ptxas 11.8 and 13.0 write them, compared with the output of `ptxas -v`.
// Empty if the bytes are no cubin, or a damaged one.
std::vector<CompiledKernel> ReadCubin(std::string_view image);

// Finds the cubins inside another file, such as a shared library by nvcc, and points into it.
// Compressed ones are not found.
std::vector<std::string_view> FindCubins(std::string_view file);

// Returns a kernel's name as people write it: "softmax<256>", without parameters and unnamed
// namespaces. A very long name becomes "at::native::copy_kernel<...>"; one that is not mangled
// stays.
std::string KernelDisplayName(const std::string& name);

}  // namespace assay
