// How sandboxed processes get to the GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "sandbox/sandbox.h"

namespace assay {

// Queues between a process and the device. With one a context takes a third of the time to make,
// and less to take down (bench/gpu_start.py), and streams wait for each other: for those that have
// one stream, or that nobody times.
enum class DeviceQueues { kByDefault, kOne };

// The nodes in `folder` that CUDA needs for the GPU with this number: a candidate with others of
// the host's GPUs could work on several at once, and be compared with a reference on one. All GPUs'
// where the number is not known, or there is no such node.
std::vector<std::string> DeviceNodes(const std::string& folder, std::optional<int> number);

// Lets a sandboxed command use the GPU: its device nodes, the driver's folders and what it reads of
// the system.
void AllowDevice(const Gpu& gpu, SandboxRequest* request,
                 DeviceQueues queues = DeviceQueues::kByDefault);

// Lets it see CUDA's toolkit, and tells PyTorch's builders of extensions and Triton where it and
// the driver lie and which architecture to build for. An empty `toolkit`: there is none.
void ShowToolkit(const Gpu& gpu, const std::string& toolkit, SandboxRequest* request);

// An architecture as PyTorch's builders of extensions write it: sm_90a is 9.0a.
std::string TorchArchitecture(const std::string& architecture);

}  // namespace assay
