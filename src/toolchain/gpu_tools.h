// NVIDIA's tools that run a program and look at what it does on the GPU: Nsight Compute's command
// line (ncu), which reads counters, and Compute Sanitizer, which finds accesses that are wrong.
#pragma once

#include <string>

#include "base/result.h"

namespace assay {

// The program itself, not the script in CUDA's bin folder that calls it.
struct GpuTool {
  std::string path;    // without links
  std::string folder;  // that holds all it needs, for the sandbox
};

// What the variable names ($ASSAY_NCU, $ASSAY_COMPUTE_SANITIZER), else the first of the folders
// that nvcc is looked for in that has one, else the newest below `packages`. Errors (kUsage): the
// variable names no program; (kEnvironment): there is none, with what to install.
Result<GpuTool> FindNcu(const std::string& usual_folder = "/usr/local/cuda/bin",
                        const std::string& packages = "/opt/nvidia");
Result<GpuTool> FindComputeSanitizer(const std::string& usual_folder = "/usr/local/cuda/bin");

}  // namespace assay
