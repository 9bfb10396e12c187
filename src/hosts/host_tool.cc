#include "hosts/host_tool.h"

#include <utility>

namespace assay {
namespace {

// A profiler keeps copies of what kernels write, and compilers' debug information.
constexpr uint64_t kToolMemoryBytes = uint64_t{8} << 30;
constexpr uint64_t kToolScratchBytes = uint64_t{1} << 30;
constexpr uint32_t kToolProcesses = 128;  // and threads

}  // namespace

void PutUnderTool(const HostTool& tool, HostOptions* options) {
  SandboxRequest& sandbox = options->sandbox;
  sandbox.arguments = tool.command(sandbox.arguments);
  const std::string& folder = tool.program.folder;
  if (!folder.starts_with("/usr/")) sandbox.binds.push_back({folder, folder});
  for (const auto& [name, value] : tool.environment) sandbox.environment[name] = value;
  sandbox.environment.try_emplace("HOME", "/tmp");
  sandbox.environment.try_emplace("PATH", "/usr/bin:/bin");
  sandbox.may_start_processes = true;
  sandbox.may_use_loopback = true;
  sandbox.cpus.clear();
  sandbox.limits.memory_bytes += kToolMemoryBytes;
  sandbox.limits.scratch_bytes += kToolScratchBytes;
  sandbox.limits.processes += kToolProcesses;
  options->lockdown.clear();
  options->artifact_path = tool.report;
  // Nsight Compute takes a stop of what it runs for its end.
  options->stays_awake = true;
  // The tool has work beside the host's.
  options->spin = false;
  options->wake_allowance_ns = 0;
  options->start_timeout_s = options->attach_timeout_s = kToolStepTimeoutS;
  options->end_timeout_s = kToolStepTimeoutS / 4;
}

}  // namespace assay
