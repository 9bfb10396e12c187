#include "worker_client/fleet.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/pipe.h"
#include "base/trace.h"

namespace assay {
namespace {

// A pair's hosts have two threads, the judge one; one core is left free.
constexpr size_t kMeasuringCores = 4;
// A worker keeps about one core and a half busy with builds and with hosts that start.
constexpr size_t kWorkersOnThreeCores = 2;
constexpr size_t kWorkersMax = 8;

// In the child, up to the exec: only calls that are safe there.
[[noreturn]] void BecomeWorker(pid_t parent, int input, int output, char* const* arguments,
                               char* const* environment) {
  ::setpgid(0, 0);  // Ctrl-C is the run's to hear
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

std::vector<std::string> EnvironmentWith(const std::string& visible_gpu) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (visible_gpu.empty() || !std::string_view(*variable).starts_with("CUDA_VISIBLE_DEVICES="))
      variables.emplace_back(*variable);
  if (!visible_gpu.empty()) variables.push_back("CUDA_VISIBLE_DEVICES=" + visible_gpu);
  return variables;
}

std::string List(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

size_t WorkersOfGpu(size_t cores, size_t gpus) {
  const size_t apart = kMeasuringCores * gpus;
  const size_t others = cores > apart ? cores - apart : 0;
  return std::clamp<size_t>(others * kWorkersOnThreeCores / 3 / gpus, 1, kWorkersMax);
}

std::vector<WorkerPlace> PlacesForWorkers(const std::vector<WorkerPlace>& devices, size_t workers,
                                          const std::vector<int>& cpus) {
  const size_t apart = kMeasuringCores * devices.size();
  const size_t others = cpus.size() > apart ? cpus.size() - apart : 0;
  const bool on_gpu = devices.front().device != "cpu";
  const size_t by_cores = on_gpu ? WorkersOfGpu(cpus.size(), devices.size()) : 1;
  const size_t count = workers > 0 ? workers : by_cores;
  std::vector<WorkerPlace> places;
  for (size_t i = 0; i < devices.size(); ++i) {
    WorkerPlace place = devices[i];
    if (on_gpu && count > 1 && others > 1) {
      // Interrupts tend to land on the first cores.
      const auto end = cpus.end() - static_cast<std::ptrdiff_t>(kMeasuringCores * i);
      place.measuring_cores.assign(end - static_cast<std::ptrdiff_t>(kMeasuringCores), end);
      place.cores.assign(cpus.begin(), cpus.begin() + static_cast<std::ptrdiff_t>(others));
    }
    places.insert(places.end(), count, place);
  }
  return places;
}

WorkerProcesses::WorkerProcesses(std::string program, std::vector<WorkerPlace> places,
                                 std::vector<std::string> more_arguments)
    : program_(std::move(program)), more_arguments_(std::move(more_arguments)) {
  for (WorkerPlace& place : places) workers_.emplace_back(std::move(place));
}

WorkerProcesses::~WorkerProcesses() {
  for (size_t i = 0; i < workers_.size(); ++i) Kill(i);
}

Result<void> WorkerProcesses::Start(size_t index, int sharers) {
  Worker& worker = workers_[index];
  Kill(index);
  ASSAY_ASSIGN_OR_RETURN(Pipe input, MakePipe());
  ASSAY_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  std::vector<std::string> words{program_, "worker", "--device", worker.place.device};
  words.insert(words.end(), more_arguments_.begin(), more_arguments_.end());
  if (!worker.place.cores.empty())
    words.insert(words.end(), {"--cores", List(worker.place.cores), "--measuring-cores",
                               List(worker.place.measuring_cores)});
  if (sharers > 1) words.insert(words.end(), {"--sharers", fmt::format("{}", sharers)});
  std::vector<std::string> variables = EnvironmentWith(worker.place.visible_gpu);
  const std::vector<char*> arguments = Pointers(words), environment = Pointers(variables);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0)
    return EnvironmentError(fmt::format("cannot start a worker: {}", std::strerror(errno)));
  if (pid == 0)
    BecomeWorker(parent, input.read.get(), output.write.get(), arguments.data(),
                 environment.data());
  worker.pid = pid;
  worker.input = std::move(input.write);
  worker.output = std::move(output.read);
  DoNotBlock(worker.input.get());
  DoNotBlock(worker.output.get());
  return {};
}

void WorkerProcesses::Send(size_t index, const std::string& line) {
  Worker& worker = workers_[index];
  if (worker.pid == 0) return;
  worker.sending += line + "\n";
  Write(worker);
}

void WorkerProcesses::Kill(size_t index) {
  Worker& worker = workers_[index];
  if (worker.pid == 0) return;
  ::kill(worker.pid, SIGKILL);
  ::waitpid(worker.pid, nullptr, 0);
  worker = Worker(worker.place);
}

void WorkerProcesses::Release(size_t index) { workers_[index].input = UniqueFd(); }

void WorkerProcesses::Interrupt(size_t index) {
  if (workers_[index].pid != 0) ::kill(workers_[index].pid, SIGTERM);
}

void WorkerProcesses::Write(Worker& worker) {
  if (worker.input.get() < 0) return worker.sending.clear();
  while (!worker.sending.empty()) {
    const ssize_t size = ::write(worker.input.get(), worker.sending.data(), worker.sending.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    // Its end is read from its output.
    if (size <= 0) return worker.sending.clear();
    worker.sending.erase(0, static_cast<size_t>(size));
  }
}

void WorkerProcesses::Read(Worker& worker) {
  char buffer[1 << 16];
  while (true) {
    const ssize_t size = ::read(worker.output.get(), buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) {
      worker.output = UniqueFd();
      return;
    }
    worker.received.append(buffer, static_cast<size_t>(size));
  }
}

std::optional<Fleet::Said> WorkerProcesses::TakeLine() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (worker.pid == 0) continue;
    if (const size_t end = worker.received.find('\n'); end != std::string::npos) {
      Said said{i, worker.received.substr(0, end), ""};
      worker.received.erase(0, end + 1);
      return said;
    }
    if (worker.output.get() < 0) return Reap(i);
  }
  return std::nullopt;
}

Fleet::Said WorkerProcesses::Reap(size_t index) {
  Worker& worker = workers_[index];
  ::kill(worker.pid, SIGKILL);  // it may live on with its output closed
  int status = 0;
  while (::waitpid(worker.pid, &status, 0) < 0 && errno == EINTR) {
  }
  worker = Worker(worker.place);
  return {index, std::nullopt,
          WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                              : fmt::format("ended with exit code {}", WEXITSTATUS(status))};
}

void WorkerProcesses::Move(int timeout_ms) {
  std::vector<pollfd> polled;
  std::vector<Worker*> of;
  for (Worker& worker : workers_) {
    if (worker.pid == 0) continue;
    polled.push_back({worker.output.get(), POLLIN, 0});
    of.push_back(&worker);
    if (worker.sending.empty()) continue;
    polled.push_back({worker.input.get(), POLLOUT, 0});
    of.push_back(&worker);
  }
  if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) return;
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    if (polled[i].events == POLLOUT)
      Write(*of[i]);
    else
      Read(*of[i]);
  }
}

std::optional<Fleet::Said> WorkerProcesses::Wait(int timeout_ms) {
  if (auto said = TakeLine()) return said;
  {
    const Span span("wait for a worker");
    Move(timeout_ms);
  }
  return TakeLine();
}

}  // namespace assay
