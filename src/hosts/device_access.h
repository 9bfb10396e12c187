// Gives sandboxed processes access to the GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu/gpu.h"
#include "sandbox/sandbox.h"

namespace assay {

// Queues between a process and the device. With one queue a context takes a third of the time to
// make and less to end (bench/gpu_start.py), but streams wait for each other: for processes with
// one stream, or without timing.
enum class DeviceQueues { kByDefault, kOne };

// Returns the value of CUDA_DEVICE_MAX_CONNECTIONS for a process: the user's own, if the judge has
// one in its environment. nullopt: none, the driver chooses.
std::optional<std::string> ConnectionsOf(DeviceQueues queues);

// Returns the nodes in `folder` that CUDA needs for the GPU with this number, and for no other: a
// candidate could work on several GPUs while the reference has one. Includes all GPUs' nodes if the
// number is not known or has no node.
std::vector<std::string> DeviceNodes(const std::string& folder, std::optional<int> number);

// Shows a sandboxed command the driver's library, to link with; it cannot use the GPU.
void ShowDriver(const Gpu& gpu, SandboxRequest* request);

// Lets a sandboxed command use the GPU: shows it the device nodes, the driver's folders, and the
// system files that the driver reads.
void AllowDevice(const Gpu& gpu, SandboxRequest* request,
                 DeviceQueues queues = DeviceQueues::kByDefault);

// Shows a sandboxed command CUDA's toolkit, and tells PyTorch's extension builders and Triton the
// paths of toolkit and driver and the architecture to build for. Empty `toolkit`: there is none.
void ShowToolkit(const Gpu& gpu, const std::string& toolkit, SandboxRequest* request);

// Returns an architecture as PyTorch's extension builders write it: 9.0a for sm_90a.
std::string TorchArchitecture(const std::string& architecture);

}  // namespace assay
