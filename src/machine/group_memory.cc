#include "machine/group_memory.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace assay {
namespace fs = std::filesystem;
namespace {

// v1 says "no limit" by a number of this size or more.
constexpr uint64_t kNoLimitBytes = uint64_t{1} << 60;

std::optional<uint64_t> ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number) || number >= kNoLimitBytes) return std::nullopt;
  return number;
}

// File pages that are not in use, of a group and those below it [bytes].
uint64_t DroppableBytes(const fs::path& group) {
  std::ifstream file(group / "memory.stat");
  uint64_t own = 0, number = 0;
  for (std::string name; file >> name >> number;) {
    if (name == "total_inactive_file") return number;
    if (name == "inactive_file") own = number;
  }
  return own;
}

std::optional<uint64_t> LeftIn(const fs::path& group, const char* limit, const char* used) {
  const auto limit_bytes = ReadNumber(group / limit), used_bytes = ReadNumber(group / used);
  if (!limit_bytes || !used_bytes) return std::nullopt;
  const uint64_t held = *used_bytes - std::min(*used_bytes, DroppableBytes(group));
  return *limit_bytes - std::min(*limit_bytes, held);
}

bool NamesMemory(const std::string& controllers) {
  std::istringstream names(controllers);
  for (std::string name; std::getline(names, name, ',');)
    if (name == "memory") return true;
  return false;
}

}  // namespace

std::optional<uint64_t> MemoryLeftByGroups(std::string_view groups, const fs::path& root) {
  std::optional<uint64_t> least;
  std::istringstream lines{std::string(groups)};
  // Each line is `number:controllers:path`; v2 has no controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && !NamesMemory(controllers)) continue;
    const fs::path mount = v2 ? root : root / "memory";
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    while (true) {
      const auto left =
          v2 ? LeftIn(mount / group, "memory.max", "memory.current")
             : LeftIn(mount / group, "memory.limit_in_bytes", "memory.usage_in_bytes");
      if (left) least = std::min(*left, least.value_or(*left));
      if (group.empty()) break;
      group = group.parent_path();
    }
  }
  return least;
}

}  // namespace assay
