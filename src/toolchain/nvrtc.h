// NVRTC, CUDA's compiler as a library: finds it on this machine, and makes the command that
// compiles a device candidate with it in the builder's sandbox.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct Nvrtc {
  std::string library;  // "/usr/local/cuda/lib64/libnvrtc.so.13"
  std::string include;  // the toolkit's headers; empty: none beside it
  std::string folder;   // holds both; shown to the sandbox
};

// Looks in $CUDA_HOME, $CUDA_PATH, /usr/local/cuda, then in the system's library folders. Errors
// (kEnvironment) name these places and say how to install it.
Result<Nvrtc> FindNvrtc();

// Returns the argv of `program` (the path of nvrtc_build in the sandbox). `kernels`: names as in
// the launch lines; `flags`: from ParseBuildOptions; `macros`: become -DNAME=VALUE.
std::vector<std::string> NvrtcCommand(const Nvrtc& nvrtc, const std::string& program,
                                      const std::string& input, const std::string& output,
                                      const std::vector<std::string>& kernels,
                                      const std::string& architecture,
                                      const std::vector<std::string>& flags,
                                      const std::map<std::string, int64_t>& macros);

// Returns true if a `//! flags` line of a device candidate may have this flag.
bool IsAllowedForDevice(std::string_view flag);

}  // namespace assay
