// Programs of CUDA's toolkit: nvcc, with the command that compiles a native candidate in CUDA in
// the builder's sandbox, and nvdisasm, which lists machine code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct Nvcc {
  std::string path;       // without links: "/usr/local/cuda-13.0/bin/nvcc"
  std::string version;    // "Cuda compilation tools, release 13.0, V13.0.48"
  std::string toolkit;    // the folder that holds bin, include and the libraries
  std::string libraries;  // the folder of CUDA's libraries; empty: not found beside it
};

// Finds the first nvcc in ToolkitFolders(). Errors (kEnvironment) name these places and say how to
// install it.
Result<Nvcc> FindNvcc(const std::string& usual_folder = "/usr/local/cuda/bin");

// Returns the folders to search for a program of the toolkit, in this order: below $CUDA_HOME and
// $CUDA_PATH, those of $PATH, and the usual one.
std::vector<std::string> ToolkitFolders(const std::string& usual_folder);

struct Nvdisasm {
  std::string path;     // without links
  std::string toolkit;  // the folder that holds it, for the sandbox
};

// Finds the first nvdisasm in the same folders; nullopt: none.
std::optional<Nvdisasm> FindNvdisasm(const std::string& usual_folder = "/usr/local/cuda/bin");

// Finds it among Python's packages: NVIDIA's own (nvidia-cuda-nvdisasm), or in Triton. `folders`:
// where Python looks for packages.
std::optional<Nvdisasm> FindNvdisasmInPackages(const std::vector<std::string>& folders);

// Returns the argv that compiles `input` for `architecture` ("sm_90a"); kernel.h is under
// /assay/include. CUDA's run-time library is linked in, so that a host needs the driver alone.
// `flags`: from ParseBuildOptions.
std::vector<std::string> NvccCommand(const Nvcc& nvcc, const std::vector<std::string>& flags,
                                     std::string_view architecture, const std::string& input,
                                     const std::string& output);

// Returns true if a `//! flags` line of a native candidate in CUDA may have this flag.
bool IsAllowedForNvcc(std::string_view flag);

// Returns true if the flag links a library of CUDA's that computes.
bool IsCudaLibrary(std::string_view flag);

}  // namespace assay
