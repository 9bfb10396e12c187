#include "hosts/nursery.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/files.h"
#include "hosts/python_runtime.h"
#include "machine/machine.h"
#include "sandbox/support.h"
#include "wire/channel.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

// Above the numbers that commands use.
constexpr int kSocketInside = 50, kFilterInside = 51;
constexpr const char* kGraft = "/assay/graft";
// Then another takes its place: a layout of memory that favours one side does so for few verdicts.
constexpr int kHostsOfNursery = 16;
// A nursery is started where this share of the free memory holds a host.
constexpr uint64_t kMemoryShare = 8;

struct Pair {
  UniqueFd ours, theirs;
};

std::optional<Pair> MakePair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
  return Pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

struct Running {
  UniqueFd control;
  pid_t pid = 0;
  int hosts = 0;
};

// Starts a nursery; without a control socket if it cannot.
Running StartNursery(const Nursery& nursery, std::map<std::string, std::string> environment) {
  const auto support = SupportFolder();
  auto pair = MakePair();
  if (!support || !pair || AvailableMemoryBytes() / kMemoryShare < kPythonHostBytes) return {};
  environment["LD_PRELOAD"] = (fs::path(*support) / "libassay_host.so").string();
  if (!nursery.bytecode.empty()) environment["PYTHONPYCACHEPREFIX"] = nursery.bytecode;
  std::vector<std::string> words{
      nursery.python,
      "-B",
      "-s",
      (fs::path(*support) / "python" / "assay_host" / "nursery.py").string(),
      "3",
      nursery.name.substr(0, nursery.name.find(' ')),
      std::to_string(::getpid())};
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  std::vector<char*> arguments, environ_words;
  for (std::string& word : words) arguments.push_back(word.data());
  for (std::string& variable : variables) environ_words.push_back(variable.data());
  arguments.push_back(nullptr);
  environ_words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, pair->theirs.get(), 3);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 4);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, words[0].c_str(), &actions, nullptr, arguments.data(),
                                   environ_words.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {};
  return {std::move(pair->ours), pid, 0};
}

// The nurseries of this process.
struct Nurseries {
  std::mutex mutex;
  std::map<std::string, Running> running;  // by name, interpreter and environment
  std::vector<pid_t> ending;               // their end is not waited for
};

Nurseries& All() {
  static Nurseries all;
  return all;
}

// Returns the nursery of such a request, started if need be; without a control socket if it cannot
// start, or may not. The caller holds the mutex.
Running& NurseryOf(Nurseries& all, const Nursery& nursery, const SandboxRequest& request,
                   bool may_start) {
  std::string key = nursery.name + "\n" + nursery.python;
  std::map<std::string, std::string> environment = request.environment;
  for (const char* own :
       {"ASSAY_DEVICE", "CUDA_VISIBLE_DEVICES", "CUDA_CACHE_PATH", "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDA_HOME", "TORCH_CUDA_ARCH_LIST", "TRITON_LIBCUDA_PATH"})
    environment.erase(own);
  for (const auto& [variable, value] : environment) key += "\n" + variable + "=" + value;
  std::erase_if(all.ending, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
  Running& running = all.running[key];
  if (running.hosts == kHostsOfNursery) {
    all.ending.push_back(running.pid);
    running = {};
  }
  if (!running.control && may_start) running = StartNursery(nursery, environment);
  return running;
}

// Hands the end of a socket to a nursery; returns the other end.
UniqueFd Connect(const Nursery& nursery, const SandboxRequest& request) {
  Nurseries& all = All();
  const std::lock_guard lock(all.mutex);
  for (int attempt = 0; attempt < 2; ++attempt) {
    Running& running = NurseryOf(all, nursery, request, !nursery.only_ahead);
    auto pair = MakePair();
    if (!running.control || !pair) return UniqueFd();
    // The kernel names graft's process to the nursery, which may not read yet when it writes.
    const int on = 1;
    ::setsockopt(pair->theirs.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    ++running.hosts;
    const wire::Frame comes{wire::kMagic, wire::FrameKind::kAttach, {}};
    if (wire::SendFrame(running.control.get(), comes, pair->theirs.get()))
      return std::move(pair->ours);
    all.ending.push_back(running.pid);
    running = {};
  }
  return UniqueFd();
}

}  // namespace

void StartNurseryAhead(const Nursery& nursery, const SandboxRequest& request) {
  Nurseries& all = All();
  const std::lock_guard lock(all.mutex);
  NurseryOf(all, nursery, request, true);
}

void ForkFromNursery(const Nursery& nursery, SandboxRequest* request, std::vector<UniqueFd>* kept) {
  const auto support = SupportFolder();
  if (!support) return;
  auto program = ReadFile(fs::path(*support) / "graft", 16 << 20);
  if (!program) return;
  UniqueFd filter = MemoryFile(ProbedSandboxTools().filters.base);
  UniqueFd connection = Connect(nursery, *request);
  if (!filter || !connection) return;
  std::vector<std::string> words{kGraft, std::to_string(kSocketInside), "--filter",
                                 std::to_string(kFilterInside)};
  for (const auto& [ours, inside] : request->descriptors)
    words.insert(words.end(), {"--pass", std::to_string(inside)});
  for (const std::string& device : request->devices)
    words.insert(words.end(), {"--device", device});
  words.push_back("--");
  request->arguments.insert(request->arguments.begin(), words.begin(), words.end());
  request->files.push_back({kGraft, std::move(*program), true});
  request->descriptors.emplace_back(connection.get(), kSocketInside);
  request->descriptors.emplace_back(filter.get(), kFilterInside);
  kept->push_back(std::move(connection));
  kept->push_back(std::move(filter));
}

}  // namespace assay
