#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "build/build.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr double kVersionSecondsMax = 10;
constexpr size_t kVersionBytesMax = 4096;
constexpr int kLinksMax = 16;

// The sandbox shows the system's own folders alone, so a compiler elsewhere could not run there.
bool IsInSystemFolder(const fs::path& path) {
  const std::string text = path.lexically_normal().string();
  for (std::string_view folder : {"/usr/", "/bin/", "/lib/", "/lib64/"}) {
    if (text.starts_with(folder)) return true;
  }
  return false;
}

// The name under which the sandbox can start this program: the path itself, or the first of its
// symbolic links that lies in a system folder with all that follow (/etc/alternatives does not).
// The last name is not always the right one: clang++ ends at clang, which is another driver.
std::optional<std::string> NameInsideSandbox(const fs::path& path) {
  std::vector<fs::path> chain{path};
  std::error_code code;
  while (fs::is_symlink(chain.back(), code)) {
    if (chain.size() == kLinksMax) return std::nullopt;
    const fs::path target = fs::read_symlink(chain.back(), code);
    if (code) return std::nullopt;
    chain.push_back((chain.back().parent_path() / target).lexically_normal());
  }
  if (!fs::is_regular_file(chain.back(), code) || ::access(path.c_str(), X_OK) != 0)
    return std::nullopt;
  // A wrapper that writes a cache of its own cannot work in a read-only sandbox.
  const std::string last = chain.back().filename().string();
  if (last == "ccache" || last == "distcc" || last == "icecc") return std::nullopt;
  size_t first = chain.size();
  while (first > 0 && IsInSystemFolder(chain[first - 1])) --first;
  if (first == chain.size()) return std::nullopt;
  return chain[first].string();
}

std::optional<std::string> FindInPath(std::string_view name) {
  const char* variable = ::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!folders.empty()) {
    const size_t end = folders.find(':');
    const std::string_view folder = folders.substr(0, end);
    folders.remove_prefix(end == std::string_view::npos ? folders.size() : end + 1);
    if (!folder.starts_with('/')) continue;
    if (auto found = NameInsideSandbox(fs::path(folder) / name)) return found;
  }
  return std::nullopt;
}

// Everything the process prints on `fd` until it closes it, up to a bound and a deadline.
std::string ReadOutput(int fd, Deadline deadline) {
  std::string output;
  while (output.size() < kVersionBytesMax && !deadline.Expired()) {
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, deadline.RemainingMs()) <= 0) continue;
    char buffer[1024];
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count == 0 || (count < 0 && errno != EINTR)) break;
    if (count > 0) output.append(buffer, static_cast<size_t>(count));
  }
  return output;
}

// First line of `PATH --version`, in a clean environment.
Result<std::string> ReadVersion(const std::string& path) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return EnvironmentError(fmt::format("cannot make a pipe: {}", strerror(errno)));
  UniqueFd reader(ends[0]), writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::string program = path, option = "--version";
  std::string search = "PATH=/usr/bin:/bin", locale = "LC_ALL=C";
  char* arguments[] = {program.data(), option.data(), nullptr};
  char* environment[] = {search.data(), locale.data(), nullptr};
  pid_t child = -1;
  const int error = ::posix_spawn(&child, path.c_str(), &actions, nullptr, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  writer.Close();
  if (error != 0)
    return EnvironmentError(fmt::format("cannot start {}: {}", path, strerror(error)));
  const std::string output = ReadOutput(reader.get(), Deadline::AfterSeconds(kVersionSecondsMax));
  ::kill(child,
         SIGKILL);  // it has said all that is read; a compiler that hangs must not hang the judge
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string line = output.substr(0, output.find('\n'));
  if (line.empty()) return EnvironmentError(fmt::format("{} --version says nothing", path));
  return line;
}

}  // namespace

Result<Compiler> FindCompiler(std::string_view name, std::string_view language) {
  const bool c = language == "c";
  std::vector<std::string> names;
  if (name.empty()) {
    names =
        c ? std::vector<std::string>{"gcc", "clang"} : std::vector<std::string>{"g++", "clang++"};
  } else {
    names = {std::string(name)};
  }
  for (const std::string& wanted : names) {
    const auto path = FindInPath(wanted);
    if (!path) continue;
    ASSAY_ASSIGN_OR_RETURN(std::string version, ReadVersion(*path));
    return Compiler{wanted, *path, std::move(version)};
  }
  const bool clang = names.front().starts_with("clang");
  return EnvironmentError(fmt::format(
      "no {} compiler: {} is not in PATH under /usr; install one with: sudo apt-get install {}",
      c ? "C" : "C++", fmt::join(names, " or "),
      clang ? "clang"
      : c   ? "gcc"
            : "g++"));
}

std::vector<std::string> CompileCommand(const Compiler& compiler, const BuildOptions& options,
                                        std::string_view language, std::string_view input,
                                        std::string_view output) {
  const bool c = language == "c";
  std::vector<std::string> command{compiler.path, "-O3", "-march=native",
                                   c ? "-std=c11" : "-std=c++20"};
  command.insert(command.end(), {"-fPIC", "-shared", "-fvisibility=hidden", "-I/assay/include"});
  if (compiler.name.starts_with("clang")) {
    command.insert(command.end(),
                   {"-ferror-limit=3", "-fno-color-diagnostics", "-fno-caret-diagnostics"});
  } else {
    command.insert(command.end(),
                   {"-fmax-errors=3", "-fdiagnostics-color=never", "-fno-diagnostics-show-caret"});
  }
  if (!c) command.push_back("-ftemplate-backtrace-limit=2");
  // The candidate's flags win over the defaults; its libraries follow the file that needs them.
  for (const std::string& flag : options.flags) {
    if (!flag.starts_with("-l")) command.push_back(flag);
  }
  command.insert(command.end(), {"-o", std::string(output), std::string(input)});
  for (const std::string& flag : options.flags) {
    if (flag.starts_with("-l")) command.push_back(flag);
  }
  // C++ compilers add the mathematical library by themselves.
  if (c) command.push_back("-lm");
  // A symbol that nothing defines is an error of the build, with its name, rather than of the load.
  command.push_back("-Wl,-z,defs");
  return command;
}

}  // namespace assay
