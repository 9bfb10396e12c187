#include "sandbox/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "base/clock.h"
#include "base/files.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

constexpr size_t kProcFileBytesMax = 1 << 20;
constexpr double kRemoveTimeoutSeconds = 5;
constexpr std::string_view kNamePrefix = "assay-";

bool WriteValue(const std::string& path, std::string_view value) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

std::optional<uint64_t> ReadNumber(const std::string& path) {
  const auto text = ReadFile(path, 256);
  if (!text) return std::nullopt;
  uint64_t value = 0;
  if (std::sscanf(text->c_str(), "%lu", &value) != 1) return std::nullopt;
  return value;
}

// The number after `key` in a file of "key value" lines.
std::optional<uint64_t> ReadField(const std::string& path, std::string_view key) {
  const auto text = ReadFile(path, kProcFileBytesMax);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  std::string name;
  for (uint64_t value; lines >> name >> value;)
    if (name == key) return value;
  return std::nullopt;
}

std::vector<pid_t> Members(const std::string& group) {
  std::vector<pid_t> members;
  if (const auto text = ReadFile(group + "/cgroup.procs", kProcFileBytesMax)) {
    std::istringstream lines(*text);
    for (pid_t pid; lines >> pid;)
      if (pid > 0) members.push_back(pid);
  }
  return members;
}

// ---- names of owners

// Start time of a process in clock ticks since boot: with the pid it names a process for good. None
// of one that has ended and waits for its parent to ask.
std::optional<uint64_t> StartTime(pid_t pid) {
  const auto text = ReadFile(fmt::format("/proc/{}/stat", pid), 4096);
  if (!text) return std::nullopt;
  const size_t name_end = text->rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text->substr(name_end + 1));
  std::string field;
  fields >> field;  // field 3 of stat(5): the state
  if (field == "Z" || field == "X") return std::nullopt;
  for (int i = 4; i <= 22; ++i) fields >> field;
  return fields ? std::optional(std::strtoull(field.c_str(), nullptr, 10)) : std::nullopt;
}

// Pids mean something only within their namespace, and several containers may share one hierarchy.
uint64_t PidNamespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::string NewGroupName() {
  static std::atomic<uint64_t> counter{0};
  return fmt::format("{}{}-{}-{}-{}", kNamePrefix, PidNamespace(), ::getpid(),
                     StartTime(::getpid()).value_or(0), counter.fetch_add(1));
}

// True when the group was made by a process of this pid namespace that no longer exists.
bool OwnerIsGone(const std::string& name) {
  uint64_t pid_namespace = 0, start_time = 0;
  int pid = 0;
  if (std::sscanf(name.c_str(), "assay-%lu-%d-%lu-", &pid_namespace, &pid, &start_time) != 3 ||
      pid <= 0)
    return false;
  return pid_namespace == PidNamespace() && StartTime(pid) != start_time;
}

// ---- removal

// Kills every member. Without cgroup.kill (version 1, kernels before 5.14) a member could fork
// meanwhile: the caller repeats until the group is empty.
void KillMembers(const std::string& group) {
  if (WriteValue(group + "/cgroup.kill", "1")) return;
  for (const pid_t pid : Members(group)) ::kill(pid, SIGKILL);
}

bool RemoveGroup(const std::string& group) {
  const Deadline deadline = Deadline::AfterSeconds(kRemoveTimeoutSeconds);
  while (::rmdir(group.c_str()) != 0) {
    if (errno == ENOENT) return true;
    if (errno != EBUSY || deadline.Expired()) return false;
    KillMembers(group);
    // The kernel gives no event for "the last member was reaped" that works in both versions.
    ::poll(nullptr, 0, 1);
  }
  return true;
}

void RemoveGroupsOfTheDead(const std::string& folder) {
  std::error_code code;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code))
    if (const std::string name = entry->path().filename().string();
        name.starts_with(kNamePrefix) && OwnerIsGone(name))
      names.push_back(name);
  for (const std::string& name : names) RemoveGroup(folder + "/" + name);
}

// ---- finding folders

struct Hierarchy {
  std::string mount;  // where it is mounted
  std::string own;    // folder of this process's group
};

// Undoes mountinfo's octal escapes of blanks.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool ListHas(const std::string& list, std::string_view item, char separator) {
  std::istringstream items(list);
  for (std::string each; std::getline(items, each, separator);)
    if (each == item) return true;
  return false;
}

// This process's group in the hierarchy that has `controller` (version 1), or in the unified one
// (empty controller).
std::optional<std::string> OwnGroup(std::string_view controller) {
  const auto text = ReadFile("/proc/self/cgroup", kProcFileBytesMax);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : ListHas(controllers, controller, ','))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<Hierarchy> FindHierarchy(std::string_view controller) {
  const auto own = OwnGroup(controller);
  const auto mounts = ReadFile("/proc/self/mountinfo", 8 * kProcFileBytesMax);
  if (!own || !mounts) return std::nullopt;
  std::istringstream lines(*mounts);
  for (std::string line; std::getline(lines, line);) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream head(line.substr(0, dash)), tail(line.substr(dash + 3));
    std::string id, parent, device, root, point, type, source, options;
    head >> id >> parent >> device >> root >> point;
    tail >> type >> source >> options;
    const bool right = controller.empty() ? type == "cgroup2"
                                          : type == "cgroup" && ListHas(options, controller, ',');
    if (!right) continue;
    Hierarchy found{Unescape(point), Unescape(point)};
    const std::string base = root == "/" ? "" : Unescape(root);
    if (own->starts_with(base + "/") && own->size() > base.size() + 1)
      found.own += own->substr(base.size());
    return found;
  }
  return std::nullopt;
}

// Really makes a group in the folder, sets the limit and removes it.
bool CanMakeGroups(const std::string& folder, const char* limit_file, std::string_view value) {
  const std::string group = folder + "/" + NewGroupName();
  if (::mkdir(group.c_str(), 0755) != 0) return false;
  const bool works = WriteValue(group + "/" + limit_file, value) &&
                     ::access((group + "/cgroup.procs").c_str(), W_OK) == 0;
  return RemoveGroup(group) && works;
}

// The nearest folder, from this process's own group up to the mount, in which a group with that
// limit can be made.
std::string NearestFolder(const Hierarchy& hierarchy, const char* limit_file,
                          std::string_view value) {
  for (fs::path folder = hierarchy.own; folder.string().size() >= hierarchy.mount.size();
       folder = folder.parent_path())
    if (CanMakeGroups(folder.string(), limit_file, value)) return folder.string();
  return {};
}

}  // namespace

GroupFolders FindGroupFolders() {
  GroupFolders folders;
  constexpr std::string_view kProbeBytes = "1073741824";
  if (const auto memory = FindHierarchy("memory"))
    folders.memory = NearestFolder(*memory, "memory.limit_in_bytes", kProbeBytes);
  if (const auto pids = FindHierarchy("pids"))
    folders.pids = NearestFolder(*pids, "pids.max", "64");
  if (!folders.memory.empty() || !folders.pids.empty()) {
    folders.version = 1;
  } else if (const auto unified = FindHierarchy("")) {
    folders.memory = NearestFolder(*unified, "memory.max", kProbeBytes);
    if (!folders.memory.empty() && CanMakeGroups(folders.memory, "pids.max", "64"))
      folders.pids = folders.memory;
    folders.version = folders.memory.empty() ? 0 : 2;
  }
  if (!folders.memory.empty()) RemoveGroupsOfTheDead(folders.memory);
  if (!folders.pids.empty() && folders.pids != folders.memory) RemoveGroupsOfTheDead(folders.pids);
  return folders;
}

Result<ControlGroups> ControlGroups::Create(const GroupFolders& folders, uint64_t memory_bytes,
                                            uint32_t processes) {
  ControlGroups groups;
  groups.version_ = folders.version;
  const std::string name = NewGroupName();
  const auto make = [&](const std::string& folder, std::string* group) -> Result<void> {
    if (folder.empty()) return {};
    const std::string path = folder + "/" + name;
    if (::mkdir(path.c_str(), 0755) != 0)
      return EnvironmentError(
          fmt::format("cannot make the control group {}: {}", path, strerror(errno)));
    *group = path;
    // Writing "0" to version 1's tasks moves the calling thread without the lock that takes
    // cgroup.procs 5 to 13 ms.
    const std::string entry = path + (folders.version == 1 ? "/tasks" : "/cgroup.procs");
    groups.entries_.emplace_back(::open(entry.c_str(), O_WRONLY | O_CLOEXEC));
    if (!groups.entries_.back())
      return EnvironmentError(fmt::format("cannot open {}: {}", entry, strerror(errno)));
    return {};
  };
  ASSAY_RETURN_IF_ERROR(make(folders.memory, &groups.memory_));
  if (folders.pids == folders.memory) {
    groups.pids_ = groups.memory_;
  } else {
    ASSAY_RETURN_IF_ERROR(make(folders.pids, &groups.pids_));
  }
  const std::string bytes = std::to_string(memory_bytes);
  if (!groups.memory_.empty()) {
    const char* file = folders.version == 1 ? "/memory.limit_in_bytes" : "/memory.max";
    if (!WriteValue(groups.memory_ + file, bytes))
      return EnvironmentError(fmt::format("cannot limit the memory of the control group {}: {}",
                                          groups.memory_, strerror(errno)));
    // Swap is part of the limit, where the kernel accounts for it.
    WriteValue(groups.memory_ + "/memory.memsw.limit_in_bytes", bytes);
    WriteValue(groups.memory_ + "/memory.swap.max", "0");
  }
  if (!groups.pids_.empty() && !WriteValue(groups.pids_ + "/pids.max", std::to_string(processes)))
    return EnvironmentError(fmt::format("cannot limit the processes of the control group {}: {}",
                                        groups.pids_, strerror(errno)));
  return groups;
}

ControlGroups& ControlGroups::operator=(ControlGroups&& other) noexcept {
  std::swap(version_, other.version_);
  std::swap(memory_, other.memory_);
  std::swap(pids_, other.pids_);
  std::swap(entries_, other.entries_);
  return *this;
}

std::vector<int> ControlGroups::entries() const {
  std::vector<int> fds;
  for (const UniqueFd& entry : entries_) fds.push_back(entry.get());
  return fds;
}

bool ControlGroups::OutOfMemory() const {
  if (memory_.empty()) return false;
  const char* file = version_ == 1 ? "/memory.oom_control" : "/memory.events";
  return ReadField(memory_ + file, "oom_kill").value_or(0) > 0;
}

std::optional<uint64_t> ControlGroups::PeakMemoryBytes() const {
  if (memory_.empty()) return std::nullopt;
  return ReadNumber(memory_ + (version_ == 1 ? "/memory.max_usage_in_bytes" : "/memory.peak"));
}

double ControlGroups::LiveCpuSeconds() const {
  double seconds = 0;
  for (const pid_t pid : Members(pids_.empty() ? memory_ : pids_)) {
    clockid_t clock;
    timespec time{};
    if (::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &time) == 0)
      seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  return seconds;
}

bool ControlGroups::Remove() {
  entries_.clear();
  bool removed = true;
  for (std::string* group : {&memory_, &pids_}) {
    if (!group->empty()) removed = RemoveGroup(*group) && removed;
    group->clear();
  }
  return removed;
}

}  // namespace assay
