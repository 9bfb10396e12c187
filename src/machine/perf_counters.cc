#include "machine/perf_counters.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/files.h"

namespace assay {
namespace {

constexpr const char* kParanoidFile = "/proc/sys/kernel/perf_event_paranoid";

Error WhyNot(int error) {
  std::string why = fmt::format("perf_event_open: {}", std::strerror(error));
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV)
    why = "this machine shows no counters of its processor, as many virtual machines do";
  if (error == EACCES || error == EPERM) {
    const auto level = ReadFile(kParanoidFile, 64);
    why = fmt::format("not allowed here: {} is {}", kParanoidFile,
                      level ? level->substr(0, level->find('\n')) : "not to be read");
  }
  return {ErrorKind::kEnvironment, why};
}

std::vector<pid_t> ThreadsOf(pid_t pid) {
  std::vector<pid_t> threads;
  std::error_code code;
  for (std::filesystem::directory_iterator entry(fmt::format("/proc/{}/task", pid), code), end;
       !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc())
      threads.push_back(thread);
  }
  return threads;
}

}  // namespace

std::vector<PerfEvent> ProcessorEvents() {
  return {{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
          {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
          {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}};
}

Result<PerfCounters> PerfCounters::Open(pid_t pid, const std::vector<PerfEvent>& events) {
  PerfCounters counters;
  counters.events_ = events.size();
  for (const pid_t thread : ThreadsOf(pid))
    for (const PerfEvent& event : events) {
      perf_event_attr attributes{};
      attributes.size = sizeof attributes;
      attributes.type = event.type;
      attributes.config = event.config;
      attributes.exclude_kernel = 1;
      attributes.exclude_hv = 1;
      attributes.inherit = 1;
      UniqueFd counter(static_cast<int>(
          ::syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC)));
      if (!counter) return std::unexpected(WhyNot(errno));
      counters.counters_.push_back(std::move(counter));
    }
  if (counters.counters_.empty()) return EnvironmentError("the process is gone");
  return counters;
}

std::vector<double> PerfCounters::Read() const {
  std::vector<double> counts(events_, 0);
  for (size_t i = 0; i < counters_.size(); ++i) {
    uint64_t count = 0;
    if (::read(counters_[i].get(), &count, sizeof count) == sizeof count)
      counts[i % events_] += static_cast<double>(count);
  }
  return counts;
}

}  // namespace assay
