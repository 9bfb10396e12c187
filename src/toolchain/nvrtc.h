// NVRTC, CUDA's compiler as a library: where it is on this machine, and the command that compiles a
// device candidate with it in the builder's sandbox.
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
  std::string folder;   // that holds both, for the sandbox
};

// The first of $CUDA_HOME, $CUDA_PATH and /usr/local/cuda that has one, then the system's library
// folders. Errors (kEnvironment) say where it was looked for and how to install it.
Result<Nvrtc> FindNvrtc();

// argv for `program` (nvrtc_build, as the sandbox shows it). `kernels`: names as the launch lines
// have them; `flags`: from ParseBuildOptions; `macros`: become -DNAME=VALUE.
std::vector<std::string> NvrtcCommand(const Nvrtc& nvrtc, const std::string& program,
                                      const std::string& input, const std::string& output,
                                      const std::vector<std::string>& kernels,
                                      const std::string& architecture,
                                      const std::vector<std::string>& flags,
                                      const std::map<std::string, int64_t>& macros);

// Whether a `//! flags` line of a device candidate may have this flag.
bool IsAllowedForDevice(std::string_view flag);

}  // namespace assay
