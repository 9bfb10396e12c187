#include "machine/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "machine/group_memory.h"

namespace assay {

uint64_t TotalMemoryBytes() {
  struct sysinfo info {};
  return ::sysinfo(&info) == 0 ? uint64_t{info.totalram} * info.mem_unit : uint64_t{1} << 32;
}

namespace {

uint64_t MachineAvailableBytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kilobytes = 0;
    if (words >> name >> kilobytes && name == "MemAvailable:") return kilobytes * 1024;
  }
  return TotalMemoryBytes() / 2;
}

}  // namespace

uint64_t AvailableMemoryBytes() {
  const uint64_t machine = MachineAvailableBytes();
  std::ifstream file("/proc/self/cgroup");
  std::stringstream groups;
  groups << file.rdbuf();
  return std::min(machine, MemoryLeftByGroups(groups.str(), "/sys/fs/cgroup").value_or(machine));
}

namespace {

cpu_set_t CpuSet(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(static_cast<size_t>(cpu), &set);
  return set;
}

std::vector<int> ReadAffinity() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(static_cast<int>(cpu));
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

}  // namespace

const std::vector<int>& UsableCpus() {
  // Read once, before any thread is bound to fewer.
  static const std::vector<int> cpus = ReadAffinity();
  return cpus;
}

namespace {

std::vector<int>& CpusSetApart() {
  static std::vector<int> cpus;
  return cpus;
}

}  // namespace

const std::vector<int>& MeasuringCpus() {
  return CpusSetApart().empty() ? UsableCpus() : CpusSetApart();
}

void SetMeasuringCpus(std::vector<int> cpus) { CpusSetApart() = std::move(cpus); }

const std::vector<int>& StartingCpus(const std::vector<int>& pair_cpus) {
  return CpusSetApart().empty() ? pair_cpus : UsableCpus();
}

int DefaultThreads(bool on_device) {
  // The host's own thread and the driver's.
  constexpr int kOnDevice = 2;
  const int spare = std::max(1, static_cast<int>(UsableCpus().size()) - 1);
  return on_device ? std::min(spare, kOnDevice) : spare;
}

int ThreadsOfCorrectness(int threads) { return std::max(threads, 2); }

CorePlan PlanCores(const std::vector<int>& usable, int threads, int pair_index) {
  CorePlan plan;
  const size_t count = usable.size();
  const size_t taken = std::min(static_cast<size_t>(threads), count);
  // Hosts start on the last cores: interrupts tend to land on the first.
  for (size_t i = 0; i < count; ++i) {
    const int cpu = usable[(2 * count - 1 - i + static_cast<size_t>(pair_index) % count) % count];
    (i < taken ? plan.hosts : plan.judge).push_back(cpu);
  }
  plan.judge_has_own_core = !plan.judge.empty();
  if (plan.judge.empty()) plan.judge = plan.hosts;
  return plan;
}

void BindThisThread(const std::vector<int>& cpus) {
  const cpu_set_t set = CpuSet(cpus);
  ::sched_setaffinity(0, sizeof set, &set);
}

bool BindProcess(pid_t pid, const std::vector<int>& cpus) {
  const cpu_set_t set = CpuSet(cpus);
  std::error_code code;
  bool bound = false;
  // Threads may end while they are listed: that throws nothing, and the others count.
  auto thread = std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), code);
  for (; !code && thread != std::filesystem::directory_iterator(); thread.increment(code)) {
    const pid_t id = std::atoi(thread->path().filename().c_str());
    if (::sched_setaffinity(id, sizeof set, &set) == 0)
      bound = true;
    else if (errno != ESRCH)
      return false;
  }
  return bound;
}

bool BindFirstThread(pid_t pid, int cpu) {
  const cpu_set_t set = CpuSet({cpu});
  return ::sched_setaffinity(pid, sizeof set, &set) == 0;
}

namespace {

// A field of /proc/PID/status, such as "RssAnon:" [bytes]; 0 where there is none.
uint64_t StatusBytes(const std::string& pid, std::string_view field) {
  std::ifstream file("/proc/" + pid + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(field))
      return std::strtoull(line.c_str() + field.size(), nullptr, 10) * 1024;
  return 0;
}

}  // namespace

uint64_t ProcessTreeBytes() {
  std::multimap<std::string, std::string> children;  // by parent
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file("/proc/" + pid + "/stat");
    std::string text;
    std::getline(file, text);
    // The name before them may hold anything.
    std::istringstream fields(text.substr(std::min(text.rfind(')') + 1, text.size())));
    std::string state, parent;
    if (fields >> state >> parent) children.emplace(parent, pid);
  }
  uint64_t bytes = StatusBytes("self", "RssShmem:");
  std::vector<std::string> waiting{std::to_string(::getpid())};
  while (!waiting.empty()) {
    const std::string pid = std::move(waiting.back());
    waiting.pop_back();
    bytes += StatusBytes(pid, "RssAnon:");
    const auto [first, last] = children.equal_range(pid);
    for (auto child = first; child != last; ++child) waiting.push_back(child->second);
  }
  return bytes;
}

Machine DescribeMachine() {
  Machine machine;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (line.starts_with("model name") && colon != std::string::npos) {
      machine.cpu = line.substr(std::min(colon + 2, line.size()));
      break;
    }
  }
  machine.cores = static_cast<int>(UsableCpus().size());
  utsname name{};
  if (::uname(&name) == 0) machine.kernel = std::string(name.sysname) + " " + name.release;
  return machine;
}

}  // namespace assay
