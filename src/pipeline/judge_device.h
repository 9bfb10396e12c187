// The GPU that the judge works on, and how sandboxed processes get to it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/canary.h"
#include "gpu/clocks.h"
#include "gpu/gpu.h"
#include "gpu/judge_kernels.h"
#include "model/dtype.h"
#include "pipeline/host.h"

namespace assay {

// The judge's GPU with its own kernels on it, one a process.
class JudgeDevice {
 public:
  // Opens the GPU and compiles the judge's kernels for it, in the builder's sandbox. Errors
  // (kEnvironment): no driver, no device, no NVRTC, or a GPU under quarantine.
  static Result<std::unique_ptr<JudgeDevice>> Open(InterruptFlag interrupt);
  // The same with an image that is at hand.
  static Result<std::unique_ptr<JudgeDevice>> Open(Gpu gpu, const std::string& image);

  const Gpu& gpu() const { return gpu_; }
  JudgeKernels& kernels() { return *kernels_; }
  // What a problem's values may take [bytes]: half of what is free now besides contexts, since
  // hosts under test have outputs of their own. 1 at least.
  uint64_t BytesForValues() const;
  // After processes on the GPU were killed: whether it answers. Where it does not it is put under
  // quarantine; `after`: what had run, for the message. Errors (kEnvironment).
  Result<void> CheckAnswers(const std::string& after);
  // Nothing where NVML is not there.
  const std::optional<GpuClocks>& clocks() const { return clocks_; }

 private:
  explicit JudgeDevice(Gpu gpu) : gpu_(std::move(gpu)) {}
  Gpu gpu_;
  std::optional<JudgeKernels> kernels_;
  std::optional<GpuCanary> canary_;
  std::optional<GpuClocks> clocks_;
};

// A dtype as the judge's kernels know it.
gpu::ElementType DeviceType(DType dtype);

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
