// Finds NVIDIA's tools that run a program and watch it on the GPU: Nsight Compute's command line
// (ncu), which reads counters, and Compute Sanitizer, which finds wrong accesses.
#pragma once

#include <string>

#include "base/result.h"

namespace assay {

// The program itself, not the script in CUDA's bin folder that calls it.
struct GpuTool {
  std::string path;    // without links
  std::string folder;  // holds all it needs; shown to the sandbox
};

// Returns the program that the variable names ($ASSAY_NCU, $ASSAY_COMPUTE_SANITIZER), else the
// first in ToolkitFolders() (nvcc.h), else the newest below `packages`. Errors: kUsage if the
// variable names no program; kEnvironment if there is none (the message says what to install).
Result<GpuTool> FindNcu(const std::string& usual_folder = "/usr/local/cuda/bin",
                        const std::string& packages = "/opt/nvidia");
Result<GpuTool> FindComputeSanitizer(const std::string& usual_folder = "/usr/local/cuda/bin");

}  // namespace assay
