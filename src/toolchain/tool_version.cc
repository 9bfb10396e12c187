#include "toolchain/tool_version.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/pipe.h"

namespace assay {
namespace {

constexpr double kVersionSecondsMax = 10;
constexpr size_t kVersionBytesMax = 4096;

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

}  // namespace

Result<std::string> ReadVersionText(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  UniqueFd &reader = pipe.read, &writer = pipe.write;
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
  if (output.empty() || output[0] == '\n')
    return EnvironmentError(fmt::format("{} --version says nothing", path));
  return output;
}

}  // namespace assay
