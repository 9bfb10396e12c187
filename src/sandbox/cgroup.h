// Control groups of version 1 or 2 that bound a sandbox's memory and number of processes, if this
// process may make them. A group's name carries its owner, so that the groups of a killed judge are
// found and removed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace assay {

// The folders below which groups can be made. Under version 2 both are the same. Empty: not here.
struct GroupFolders {
  int version = 0;  // 0: no groups
  std::string memory;
  std::string pids;
};

// Finds the folders by making and removing a group. Removes groups of judges that are gone.
GroupFolders FindGroupFolders();

// The groups of one sandbox. Destruction kills the processes left in them and removes them.
class ControlGroups {
 public:
  ControlGroups() = default;
  // Makes the groups that `folders` allows and sets their limits. Errors (kEnvironment) leave
  // nothing behind.
  static Result<ControlGroups> Create(const GroupFolders& folders, uint64_t memory_bytes,
                                      uint32_t processes);
  ControlGroups(ControlGroups&& other) noexcept { *this = std::move(other); }
  ControlGroups& operator=(ControlGroups&& other) noexcept;
  ~ControlGroups() { Remove(); }

  // Descriptors: a single-threaded process enters the groups by writing "0" to each.
  std::vector<int> entries() const;
  bool has_memory() const { return !memory_.empty(); }
  // Returns true if the kernel killed a process for memory.
  bool OutOfMemory() const;
  std::optional<uint64_t> PeakMemoryBytes() const;
  // CPU time of the processes in the groups now [s], without those that have ended.
  double LiveCpuSeconds() const;
  // Kills the processes in the groups and removes the groups, waiting a bounded time for the
  // kernel. Returns false if one could not be removed.
  bool Remove();

 private:
  int version_ = 0;
  std::string memory_, pids_;  // folders of the groups
  std::vector<UniqueFd> entries_;
};

}  // namespace assay
