// Turns a request into bubblewrap's command line and the descriptors that it reads: these decide
// which part of the host appears inside, and where. SandboxCommand owns the descriptors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "sandbox/sandbox.h"

namespace assay {

// The bubblewrap in use.
struct Bubblewrap {
  std::string path;
  std::string version;
};

// The seccomp programs that confine installs on the command. An empty one installs nothing: for
// tests alone.
struct SandboxFilters {
  std::string base;
  std::string no_processes;  // besides, for commands that may not start processes
  std::string loopback;      // instead of `base`, for commands that may use the loopback
};

// Descriptors of confine, and the limits around them.
inline constexpr int kRequestedMax = 59;  // the highest one that a request may use
inline constexpr int kReportFd = 60;
inline constexpr int kArtifactFd = 61;
inline constexpr int kFirstFilterFd = 62;
inline constexpr int kPrivateFdMin =
    64;  // from here on: descriptors for bubblewrap alone, and the originals of the above

inline constexpr size_t kOutputBytesMax = 64 * 1024;

struct SandboxCommand {
  std::vector<std::string> arguments;      // of bubblewrap, its own name first
  std::vector<UniqueFd> owned;             // all numbered kPrivateFdMin or more
  std::vector<int> kept;                   // inherited by bubblewrap under the same number
  std::vector<std::pair<int, int>> moved;  // (ours, number that it is inherited under)
  UniqueFd report, info;                   // read ends: confine's lines, bubblewrap's information
  UniqueFd output;                         // read end
  int output_write = -1;                   // its write end, one of `owned`
  UniqueFd artifact;  // memfd that confine copies the artifact into; empty without one
};

// `confine`: the helper's content. `artifact_path` may be empty. Errors (kEnvironment): no more
// descriptors.
Result<SandboxCommand> MakeCommand(const Bubblewrap& bubblewrap, const std::string& confine,
                                   const SandboxFilters& filters, const SandboxRequest& request,
                                   bool has_memory_cgroup, const std::string& artifact_path);

}  // namespace assay
