// Starting bubblewrap as a child: control groups, a uid of its own, affinity, exactly the wanted
// descriptors.
#pragma once

#include <sys/types.h>

#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "sandbox/command.h"

namespace assay {

// A uid (and gid) that no other live sandbox has, from a range of Assay's own: 64 at once for each
// judge. Given back on destruction.
class UidLease {
 public:
  // Whether this process is root where such uids exist: then every sandbox must have one.
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

// Forks and executes. Errors (kEnvironment): fork fails. What fails in the child, it writes to the
// output as one line and exits with 127.
Result<Launched> Launch(const SandboxCommand& command, const std::vector<int>& group_entries,
                        const std::vector<int>& cpus, const std::optional<UidLease>& uid);

}  // namespace assay
