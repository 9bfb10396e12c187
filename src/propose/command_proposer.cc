#include "propose/command_proposer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "answer/text.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/pipe.h"

namespace assay {
namespace {

constexpr int kLookMs = 100;
constexpr double kDrainSeconds = 1;  // for output after the program's end
constexpr size_t kErrorBytesMax = 2048;

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, up to the exec: only calls that are safe there.
[[noreturn]] void BecomeProgram(pid_t parent, int input, int output, int errors,
                                char* const* arguments, char* const* environment) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

std::vector<std::string> EnvironmentFor(const Prompt& prompt) {
  std::vector<std::string> variables{
      "ASSAY_PROMPT_KEY=" + prompt.key, fmt::format("ASSAY_TEMPERATURE={}", prompt.temperature),
      fmt::format("ASSAY_SEED={}", prompt.seed),
      fmt::format("ASSAY_ANSWER_TOKENS={}", prompt.answer_tokens_max)};
  const std::vector<std::string> ours = variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    if (std::ranges::none_of(ours, [&](const auto& each) { return each.starts_with(name); }))
      variables.emplace_back(text);
  }
  return variables;
}

bool IsProgram(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// Finds a program as a shell does; empty: there is none.
std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return IsProgram(name) ? name : "";
  const char* variable = ::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : "/usr/bin:/bin";
  while (true) {
    const size_t end = folders.find(':');
    const std::string folder(folders.substr(0, end));
    const std::string path = (folder.empty() ? "." : folder) + "/" + name;
    if (IsProgram(path)) return path;
    if (end == std::string_view::npos) return "";
    folders.remove_prefix(end + 1);
  }
}

// A running program, and all that it started.
class Program {
 public:
  Program(pid_t pid, UniqueFd output, UniqueFd errors)
      : pid_(pid),
        pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))),
        output_(std::move(output)),
        errors_(std::move(errors)) {
    for (const UniqueFd* fd : {&output_, &errors_}) DoNotBlock(fd->get());
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { End(); }

  // Kills the group; returns the program's status, as of waitpid(). Its number stays taken until
  // it is awaited, so that no stranger is hit.
  int End() {
    if (pid_ == 0) return status_;
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);  // before it has a group of its own
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status_;
  }

  enum class Talk { kEnded, kTooLong, kFlood, kStopped };
  // Reads until the program has ended and no output is left.
  Talk Run(const CommandTerms& terms, StopToken stop);
  const std::string& output() const { return output_text_; }
  const std::string& errors() const { return errors_text_; }

 private:
  static void Read(UniqueFd& fd, std::string& text) {
    char buffer[1 << 16];
    const ssize_t size = ::read(fd.get(), buffer, sizeof buffer);
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (size <= 0) return fd.Close();
    text.append(buffer, static_cast<size_t>(size));
  }

  pid_t pid_;
  UniqueFd pidfd_, output_, errors_;
  std::string output_text_, errors_text_;
  int status_ = 0;
};

Program::Talk Program::Run(const CommandTerms& terms, StopToken stop) {
  const Deadline deadline = Deadline::AfterSeconds(terms.timeout_s);
  std::optional<Deadline> drained;
  while (output_ || errors_) {
    if (stop.stopped()) return Talk::kStopped;
    if (drained && drained->Expired()) break;  // others hold its output open
    if (deadline.Expired()) return Talk::kTooLong;
    // A negative descriptor is passed over.
    pollfd polled[] = {{output_.get(), POLLIN, 0},
                       {errors_.get(), POLLIN, 0},
                       {drained ? -1 : pidfd_.get(), POLLIN, 0}};
    if (::poll(polled, std::size(polled), std::min(deadline.RemainingMs(), kLookMs)) <= 0) continue;
    if (polled[0].revents != 0) Read(output_, output_text_);
    if (polled[1].revents != 0) Read(errors_, errors_text_);
    if (polled[2].revents != 0) drained = Deadline::AfterSeconds(kDrainSeconds);
    if (output_text_.size() > terms.answer_bytes_max) return Talk::kFlood;
    if (errors_text_.size() > 2 * kErrorBytesMax)
      errors_text_.erase(0, errors_text_.size() - kErrorBytesMax);
  }
  while (!drained) {  // it closed its output, and goes on
    if (stop.stopped()) return Talk::kStopped;
    if (deadline.Expired()) return Talk::kTooLong;
    pollfd ended{pidfd_.get(), POLLIN, 0};
    if (::poll(&ended, 1, std::min(deadline.RemainingMs(), kLookMs)) > 0) break;
  }
  return Talk::kEnded;
}

// The end of what a program wrote to stderr, for a message; empty: nothing.
std::string ErrorsShown(std::string errors) {
  if (errors.size() > kErrorBytesMax) errors.erase(0, errors.size() - kErrorBytesMax);
  errors = MendUtf8(std::string(Trimmed(errors)));
  for (char& c : errors)
    if ((static_cast<unsigned char>(c) < ' ' && c != '\n') || c == '\x7f') c = ' ';
  return errors.empty() ? "" : ":\n" + errors;
}

}  // namespace

Result<std::vector<std::string>> SplitCommand(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      word += command[++i];
      in_word = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::exchange(word, ""));
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return UsageError(fmt::format("a {} without its end in: {}", quote, command));
  if (in_word) words.push_back(word);
  if (words.empty()) return UsageError("command: needs a program, as in command:./propose.sh");
  return words;
}

Result<std::unique_ptr<Proposer>> CommandProposer::Open(std::string name, std::string_view command,
                                                        CommandTerms terms) {
  ASSAY_ASSIGN_OR_RETURN(std::vector<std::string> words, SplitCommand(command));
  const std::string path = FindProgram(words[0]);
  if (path.empty()) return UsageError(fmt::format("{}: there is no program '{}'", name, words[0]));
  words[0] = path;
  return std::unique_ptr<Proposer>(new CommandProposer(std::move(name), std::move(words), terms));
}

Result<Answer> CommandProposer::Propose(const Prompt& prompt, StopToken stop) {
  const int64_t start_ns = MonotonicNs();
  std::string text = prompt.system.empty() ? "" : prompt.system + "\n\n";
  text += prompt.text;
  if (!text.ends_with('\n')) text += '\n';
  // A file, so that a program that reads nothing is not waited for.
  UniqueFd input = MemoryFile(text);
  if (!input)
    return EnvironmentError(fmt::format("no memory for a prompt: {}", std::strerror(errno)));
  ASSAY_ASSIGN_OR_RETURN(Pipe output, MakePipe());
  ASSAY_ASSIGN_OR_RETURN(Pipe errors, MakePipe());
  std::vector<std::string> words = words_, variables = EnvironmentFor(prompt);
  const std::vector<char*> arguments = Pointers(words), environment = Pointers(variables);
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid < 0)
    return EnvironmentError(fmt::format("cannot start {}: {}", words_[0], std::strerror(errno)));
  if (pid == 0)
    BecomeProgram(parent, input.get(), output.write.get(), errors.write.get(), arguments.data(),
                  environment.data());
  output.write.Close();
  errors.write.Close();
  Program program(pid, std::move(output.read), std::move(errors.read));
  const Program::Talk talk = program.Run(terms_, stop);
  const int status = program.End();
  const auto failed = [&](const std::string& how) {
    return EnvironmentError(fmt::format("{} {}{}", name_, how, ErrorsShown(program.errors())));
  };
  if (talk == Program::Talk::kStopped) return Fail(ErrorKind::kInterrupted, "interrupted");
  if (talk == Program::Talk::kTooLong)
    return failed(fmt::format("gave no answer in {:.0f} s", terms_.timeout_s));
  if (talk == Program::Talk::kFlood)
    return failed(fmt::format("wrote more than {} bytes", terms_.answer_bytes_max));
  if (WIFSIGNALED(status)) return failed(fmt::format("was killed by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0)
    return failed(fmt::format("ended with exit code {}", WEXITSTATUS(status)));
  Answer answer;
  SplitText split = SplitReasoning(MendUtf8(program.output()));
  answer.text = std::move(split.rest);
  answer.reasoning = std::move(split.reasoning);
  answer.model = words_[0].substr(words_[0].rfind('/') + 1);
  answer.finish = "stop";
  answer.usage.wall_s = static_cast<double>(MonotonicNs() - start_ns) / 1e9;
  return answer;
}

}  // namespace assay
