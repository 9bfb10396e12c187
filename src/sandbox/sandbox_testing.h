// What the sandbox's tests share: requests that run the probe program (sandbox_probe.cc), and looks
// at what is left.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "sandbox/sandbox.h"

namespace assay {

inline std::string ProbePath() { return ASSAY_BUILD_DIRECTORY "/tests/sandbox_probe"; }

inline SandboxRequest ProbeRequest(std::vector<std::string> arguments) {
  SandboxRequest request;
  request.arguments = {"/assay/probe"};
  request.arguments.insert(request.arguments.end(), arguments.begin(), arguments.end());
  request.files.push_back({"/assay/probe", ReadFile(ProbePath(), 64 << 20).value(), true});
  return request;
}

inline ToolRun RunRequest(const SandboxRequest& request, const std::string& artifact = "",
                          double timeout_s = 20) {
  auto run = RunToolInSandbox(request, artifact, Deadline::AfterSeconds(timeout_s));
  if (!run) {
    ADD_FAILURE() << run.error().message;
    return {};
  }
  return *run;
}

inline ToolRun RunProbe(std::vector<std::string> arguments) {
  return RunRequest(ProbeRequest(std::move(arguments)));
}

// The probe's exit status: 0 worked, else errno. -signal when it was killed.
inline int ProbeResult(const SandboxRequest& request) {
  const ToolRun run = RunRequest(request);
  return run.exit.exited ? run.exit.status : -run.exit.status;
}

// Process ids of processes with `marker` in their command line.
inline std::vector<int> ProcessesWith(const std::string& marker) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == ::getpid()) continue;
    std::ifstream file(entry.path() / "cmdline");
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find(marker) != std::string::npos) found.push_back(pid);
  }
  return found;
}

// Waits until the sandbox has printed `text`.
inline bool AwaitOutput(Sandbox& sandbox, const std::string& text) {
  const Deadline deadline = Deadline::AfterSeconds(30);
  while (sandbox.Output().find(text) == std::string::npos) {
    if (deadline.Expired()) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

// Control groups of this process that still exist.
inline std::vector<std::string> GroupsLeft() {
  std::vector<std::string> left;
  const std::string mark = "-" + std::to_string(::getpid()) + "-";
  for (const std::string& folder : {ProbeSandbox().memory_cgroup, ProbeSandbox().pids_cgroup}) {
    if (folder.empty()) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().filename().string().find(mark) != std::string::npos)
        left.push_back(entry.path());
  }
  return left;
}

}  // namespace assay
