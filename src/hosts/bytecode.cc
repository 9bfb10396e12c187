#include "hosts/bytecode.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>

#include "base/files.h"
#include "base/hash.h"
#include "base/trace.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

// What hosts import, or PyTorch as they use it. Python looks for bytecode below the prefix alone,
// so what is not named here is compiled in each host. torch.compile is left out: it is twice as
// much again, for baselines that few ask for.
constexpr const char* kImports = R"python(
import sys
sys.path[:] = [path for path in sys.path if path]  # not the folder where the user happens to be
import importlib
import torch
for name in ('torch._subclasses.fake_tensor', 'torch.utils._python_dispatch',
             'torch.utils.cpp_extension', 'torch.profiler', 'numpy', 'pickle', 'tarfile',
             'triton', 'triton.language'):
    try:
        importlib.import_module(name)
    except Exception:
        pass
try:  # which imports most of what it needs when it is used
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        torch.nn.Linear(4, 4)(torch.randn(4, 4)).softmax(-1)
except Exception:
    pass
)python";

// PyTorch's import takes some seconds, of which most are spent on what is wanted here.
constexpr int kImportMsMax = 120'000, kLookEveryMs = 20;

// Waits for the child; false where it fails, or is not done in time.
bool Await(pid_t pid) {
  int status = 0;
  for (int waited_ms = 0;; waited_ms += kLookEveryMs) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (ended < 0 && errno != EINTR) return false;
    if (waited_ms >= kImportMsMax) break;
    ::poll(nullptr, 0, kLookEveryMs);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return false;
}

bool Import(const std::string& executable, const std::string& prefix) {
  const std::string setting = "PYTHONPYCACHEPREFIX=" + prefix;
  // The user's environment may forbid what is wanted here.
  const char* arguments[] = {"/usr/bin/env",
                             "-u",
                             "PYTHONDONTWRITEBYTECODE",
                             setting.c_str(),
                             "CUDA_VISIBLE_DEVICES=",
                             executable.c_str(),
                             "-s",
                             "-c",
                             kImports,
                             nullptr};
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
    ::umask(022);
    ::execv(arguments[0], const_cast<char* const*>(arguments));
    ::_exit(127);
  }
  return Await(pid);
}

// Root's sandboxes run as another user, who must be able to look into it.
bool MakeFolder(const fs::path& folder) {
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) return false;
  if (::geteuid() == 0)
    for (const fs::path& each : {folder, folder.parent_path(), folder.parent_path().parent_path()})
      fs::permissions(each, fs::perms(0755), code);
  return true;
}

// Where PyTorch's own lies below the prefix. A full disk leaves it out, and Python says nothing.
fs::path BelowPrefix(const fs::path& prefix, const fs::path& missing) {
  return prefix / missing.parent_path().parent_path().relative_path() / missing.filename();
}

// What earlier calls that were killed left behind.
void RemoveUnfinished(const fs::path& folder) {
  constexpr auto kSurelyDead = std::chrono::hours(1);
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    std::error_code ignored;
    const bool unfinished = entry.path().extension() == ".making";
    if (unfinished &&
        fs::file_time_type::clock::now() - entry.last_write_time(ignored) > kSurelyDead)
      fs::remove_all(entry.path(), ignored);
  }
}

}  // namespace

fs::path BytecodeFolder() {
  return ::geteuid() == 0 ? fs::path("/var/cache/assay/bytecode") : CacheFolder() / "bytecode";
}

std::string BytecodeOf(const PythonRuntime& python, const std::string& missing,
                       const fs::path& all) {
  const std::string key =
      Sha256Hex(fmt::format("{}\n{}\n{}\n{}\n{}", python.executable, python.version,
                            python.torch_version, missing, kImports))
          .substr(0, 16);
  const fs::path folder = all / key;
  std::error_code code;
  if (fs::is_directory(folder, code)) return folder.string();
  const Span span("compile PyTorch's bytecode");
  RemoveUnfinished(all);
  const fs::path making = all / fmt::format("{}-{}.making", key, ::getpid());
  if (MakeFolder(making) && Import(python.executable, making.string()) &&
      fs::exists(BelowPrefix(making, missing), code))
    fs::rename(making, folder, code);
  fs::remove_all(making, code);
  return fs::is_directory(folder, code) ? folder.string() : std::string();
}

}  // namespace assay
