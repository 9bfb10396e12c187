// Shared parts of the sandbox's tests: requests that run the probe program (sandbox_probe.cc), and
// searches for leftovers.
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
#include "sandbox/support.h"

namespace assay {

// The path of one of the tests' helpers, which lie beside the test's binary.
inline std::string HelperPath(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}
inline std::string ProbePath() { return HelperPath("sandbox_probe"); }

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

// Returns the probe's exit status: 0 if it worked, else errno; minus the signal if it was killed.
inline int ProbeResult(const SandboxRequest& request) {
  const ToolRun run = RunRequest(request);
  return run.exit.exited ? run.exit.status : -run.exit.status;
}

// A bubblewrap that weakens its sandbox: a script that changes words of the command line before it
// runs the real one. Destruction removes it.
class WeakBubblewrap {
 public:
  // `changes`: Python statements that change `words` (the arguments passed by --args) or `given`
  // (those on the command line).
  explicit WeakBubblewrap(const std::string& changes,
                          const std::string& real = ProbedSandboxTools().bubblewrap.path)
      : folder_(TemporaryFolder::Create().value()) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    const std::string script = folder_.path() / "bwrap";
    std::ofstream(script) << R"(#!/usr/bin/python3 -IS
import os, sys

real, given = ")" << real << R"(", sys.argv[1:]
def replace(old, new):
    assert old in words, old
    at = words.index(old)
    words[at : at + 1] = new
if given[:1] == ["--args"]:
    with os.fdopen(int(given[1]), "rb") as file:
        words = file.read().decode().split("\0")[:-1]
)" << changes << R"(
    weakened = os.memfd_create("words", 0)
    os.write(weakened, "".join(word + "\0" for word in words).encode())
    os.lseek(weakened, 0, os.SEEK_SET)
    given[1] = str(weakened)
os.execv(real, [real] + given)
)";
    std::filesystem::permissions(script, std::filesystem::perms(0755));
  }
  std::string path() const { return folder_.path() / "bwrap"; }

 private:
  TemporaryFolder folder_;
};

// Returns the ids of processes with `marker` in their command line.
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

// Waits until the sandbox has printed `text`. Returns false after 30 s.
inline bool AwaitOutput(Sandbox& sandbox, const std::string& text) {
  const Deadline deadline = Deadline::AfterSeconds(30);
  while (sandbox.Output().find(text) == std::string::npos) {
    if (deadline.Expired()) return false;
    ::poll(nullptr, 0, 2);
  }
  return true;
}

// Returns the control groups of this process that still exist.
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
