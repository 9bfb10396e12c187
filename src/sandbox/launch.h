// Starts bubblewrap as a child, in control groups, with a uid of its own, with its CPUs, and with
// exactly the wanted descriptors.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "sandbox/command.h"

namespace assay {

// A uid (and gid) that no other live sandbox has, from a range of Assay's own: at most 64 at once
// for each judge. Given back on destruction. Any thread may take one.
class UidLease {
 public:
  // Returns true if this process is root and such uids exist: then every sandbox must have one.
  static bool Needed();
  // nullopt: 64 are in use.
  static std::optional<UidLease> Take();
  UidLease(UidLease&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}
  UidLease& operator=(UidLease&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~UidLease();
  uid_t uid() const;

 private:
  explicit UidLease(int slot) : slot_(slot) {}
  int slot_;
};

struct Launched {
  pid_t pid = -1;
  UniqueFd pidfd;
};

// Forks and executes. Errors (kEnvironment): fork or pidfd_open fails. On a later failure the child
// writes one line to the output and exits with 127.
Result<Launched> Launch(const SandboxCommand& command, const std::vector<int>& group_entries,
                        const std::vector<int>& cpus, const std::optional<UidLease>& uid);

}  // namespace assay
