// Control groups of version 1 or 2 that bound a sandbox's memory and number of processes, where
// this process may make them. A group's name carries its owner, so that what a killed judge left
// behind is found and removed.
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

// Where groups can be made. Both folders are the same under version 2. Empty: not on this machine.
struct GroupFolders {
  int version = 0;
  std::string memory;
  std::string pids;
};

// Finds the folders by really making and removing a group. Removes groups of judges that are gone.
GroupFolders FindGroupFolders();

// The groups of one sandbox. Destruction kills what is left in them and removes them.
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

  // A single-threaded process that writes "0" to each of these enters the groups.
  std::vector<int> entries() const;
  bool has_memory() const { return !memory_.empty(); }
  bool OutOfMemory() const;
  std::optional<uint64_t> PeakMemoryBytes() const;
  // CPU time of the processes that are in the groups now [s]; those that ended are not in it.
  double LiveCpuSeconds() const;
  // Kills what is in the groups and removes them, waiting a bounded time for the kernel. False:
  // some could not be.
  bool Remove();

 private:
  int version_ = 0;
  std::string memory_, pids_;  // folders of the groups
  std::vector<UniqueFd> entries_;
};

}  // namespace assay
