#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cli/exit_code.h"
#include "cli/options.h"
#include "cli/pilot_command.h"
#include "cli/submit_command.h"
#include "doctor/doctor.h"
#include "machine/machine.h"
#include "worker/worker.h"

namespace assay {
namespace {

// All of it, or false.
bool WriteAll(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t size = ::write(fd, text.data() + done, text.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    done += static_cast<size_t>(size);
  }
  return true;
}

}  // namespace

int RunWorker(const WorkerCommandOptions& options) {
  if (!options.server.empty()) return RunRunner(options);
  if (!options.queue.empty()) return RunPilot(options);
  if (!options.name.empty())
    return ReportError({ErrorKind::kUsage,
                        "--name needs --server or --queue: requests on stdin "
                        "are answered without a name"});
  if (!options.device.empty() && options.device != "cpu" && options.device != "cuda")
    return ReportError(
        {ErrorKind::kUsage, fmt::format("--device {}: give cpu or cuda; a GPU's number goes into "
                                        "$CUDA_VISIBLE_DEVICES",
                                        options.device)});
  const std::atomic<bool>& interrupted = InstallInterruptHandler();
  HeedWeakSandboxFlag(options.allow_weak_sandbox);
  WorkerOptions worker;
  worker.events_fd = STDOUT_FILENO;
  worker.device = options.device;
  worker.sessions_max = options.sessions;
  worker.sharers = options.sharers;
  worker.memory_bytes = AvailableMemoryBytes() / 2 / static_cast<uint64_t>(options.sharers);
  if (!options.memory.empty()) {
    const auto bytes = ParseBytes(options.memory, "--memory");
    if (!bytes) return ReportError(bytes.error());
    worker.memory_bytes = *bytes;
  }
  if (!options.cores.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : options.cores) CPU_SET(static_cast<size_t>(core), &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0)
      return ReportError({ErrorKind::kUsage,
                          "--cores names a core that this process may not use: taskset -cp $$ "
                          "lists those it may"});
  }
  SetMeasuringCpus(options.measuring_cores);
  std::string notice;
  worker.machine = LoadMachineProfile(&notice);
  if (!notice.empty()) Notice(notice);
  Worker(std::move(worker), [](const std::string& line) {
    return WriteAll(STDOUT_FILENO, line);
  }).Run(STDIN_FILENO, interrupted);
  return kExitGood;
}

}  // namespace assay
