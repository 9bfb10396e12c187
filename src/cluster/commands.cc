#include "cluster/commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/files.h"
#include "base/pipe.h"

namespace assay {
namespace {

constexpr int kLookMs = 50;
constexpr int kNotFound = 127;
constexpr size_t kOutputBytesMax = size_t{16} << 20;

// In the child, up to the exec: only calls that are safe there.
[[noreturn]] void BecomeProgram(pid_t parent, int input, int output, int errors,
                                char* const* arguments) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kNotFound);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execvp(arguments[0], arguments);
  ::_exit(kNotFound);
}

// Reads what is there; false at the end.
bool ReadSome(UniqueFd& fd, std::string* text) {
  std::array<char, 1 << 14> bytes;
  const ssize_t size = ::read(fd.get(), bytes.data(), bytes.size());
  if (size < 0 && errno == EINTR) return true;
  if (size <= 0 || text->size() > kOutputBytesMax) return false;
  text->append(bytes.data(), static_cast<size_t>(size));
  return true;
}

// Reads both until they end; false: not within the time.
bool ReadAll(UniqueFd& output, UniqueFd& errors, const Deadline& deadline, CommandAnswer* answer) {
  bool has_output = true, has_errors = true;
  while (has_output || has_errors) {
    if (deadline.Expired()) return false;
    std::array<pollfd, 2> polled{
        {{has_output ? output.get() : -1, POLLIN, 0}, {has_errors ? errors.get() : -1, POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), kLookMs) <= 0) continue;
    if (polled[0].revents != 0) has_output = ReadSome(output, &answer->output);
    if (polled[1].revents != 0) has_errors = ReadSome(errors, &answer->errors);
  }
  return true;
}

// False: it does not end within the time, and was killed.
bool Await(pid_t pid, const Deadline& deadline, bool has_time, int* status) {
  while (has_time && !deadline.Expired()) {
    if (::waitpid(pid, status, WNOHANG) == pid) return true;
    ::poll(nullptr, 0, 2);
  }
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, status, 0) < 0 && errno == EINTR) {
  }
  return false;
}

}  // namespace

Result<CommandAnswer> RealCommands::Run(const std::vector<std::string>& words,
                                        const std::string& input, double seconds_max) {
  // In memory: a program that does not read it cannot block.
  const UniqueFd given = MemoryFile(input);
  if (!given) return EnvironmentError("there is no memory for the input of a program");
  ::lseek(given.get(), 0, SEEK_SET);
  ASSAY_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  ASSAY_ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const Deadline deadline = Deadline::AfterSeconds(seconds_max);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0)
    return EnvironmentError(fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
  if (pid == 0)
    BecomeProgram(parent, given.get(), output.write.get(), errors.write.get(), arguments.data());
  output.write = UniqueFd();
  errors.write = UniqueFd();
  CommandAnswer answer;
  const bool has_time = ReadAll(output.read, errors.read, deadline, &answer);
  int status = 0;
  if (!Await(pid, deadline, has_time, &status))
    return EnvironmentError(
        fmt::format("{} did not answer within {:.0f} s, and was ended", words[0], seconds_max));
  if (WIFSIGNALED(status))
    return EnvironmentError(fmt::format("{} was killed by signal {}", words[0], WTERMSIG(status)));
  answer.exit_code = WEXITSTATUS(status);
  if (answer.exit_code == kNotFound && answer.output.empty() && answer.errors.empty())
    return EnvironmentError(fmt::format("{} is not installed on this machine", words[0]));
  return answer;
}

}  // namespace assay
