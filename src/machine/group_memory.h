// The memory that control groups leave to this process: containers and batch systems set limits
// below the machine's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace assay {

// Bytes that the memory groups of a process leave free: the least of `limit - used` over its group
// and all groups above it, where file pages that the kernel may drop count as free. `groups` is the
// text of the process's /proc/PID/cgroup, `root` the folder where cgroups are mounted
// (/sys/fs/cgroup). nullopt: no group has a limit.
std::optional<uint64_t> MemoryLeftByGroups(std::string_view groups,
                                           const std::filesystem::path& root);

}  // namespace assay
