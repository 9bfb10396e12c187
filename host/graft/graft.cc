// graft: stands in a sandbox for a Python host that a nursery forks into it.
//
//   graft SOCKET [--pass FD]... [--filter FD]... [--device PATH]... -- COMMAND [ARGUMENT]...
//
// Theory of operation. confine runs this program as the sandbox's command, under all of its rules.
// It sends its environment, the command, its output and the named descriptors to the nursery
// (assay_host/nursery.py) on SOCKET, a socket of whole messages. The nursery forks a process that
// joins this one's namespaces, groups, limits and user, confines itself as confine would have, and
// becomes the host. This process then closes all it has but the socket, waits until the nursery
// says how the host ended, and ends likewise. If the nursery cannot do that, COMMAND is executed
// here instead: the host then starts as any program does.
//
// Nothing foreign runs before the host is there. This process is not dumpable, so the host's code
// cannot read or trace it; to kill it ends the sandbox. libc only.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kDescriptorsMax = 16;
constexpr size_t kMessageMax = 128 * 1024;

char message[kMessageMax];
size_t message_size = 0;

bool Append(const char* kind, const char* text) {
  const int size =
      snprintf(message + message_size, kMessageMax - message_size, "%s %s", kind, text);
  if (size < 0 || static_cast<size_t>(size) + 1 > kMessageMax - message_size) return false;
  message_size += static_cast<size_t>(size) + 1;
  return true;
}

bool Send(int socket, const int* descriptors, int count) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
  iovec part{message, message_size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = CMSG_SPACE(sizeof(int) * static_cast<size_t>(count));
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int) * static_cast<size_t>(count));
  memcpy(CMSG_DATA(rights), descriptors, sizeof(int) * static_cast<size_t>(count));
  return sendmsg(socket, &header, MSG_NOSIGNAL) == static_cast<ssize_t>(message_size);
}

// The next word of the nursery's, an int32; false: it is gone.
bool Receive(int socket, int32_t* word) {
  ssize_t count;
  while ((count = recv(socket, word, sizeof *word, 0)) < 0 && errno == EINTR) {
  }
  return count == sizeof *word;
}

// Ends as the host ended, by this wait status.
[[noreturn]] void EndAs(int32_t status) {
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  signal(WTERMSIG(status), SIG_DFL);
  kill(getpid(), WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

}  // namespace

int main(int count, char** arguments) {
  int descriptors[kDescriptorsMax] = {STDOUT_FILENO, STDERR_FILENO};
  int descriptor_count = 2, at = 2;
  bool fits = true;
  const int socket = count > 2 ? atoi(arguments[1]) : -1;
  for (; at + 1 < count && strcmp(arguments[at], "--") != 0; at += 2) {
    // "--pass 3" becomes "pass 3", in the order of the descriptors.
    fits = Append(arguments[at] + 2, arguments[at + 1]) && fits;
    if (strcmp(arguments[at], "--device") != 0 && descriptor_count < kDescriptorsMax)
      descriptors[descriptor_count++] = atoi(arguments[at + 1]);
  }
  char** command = arguments + at + 1;
  if (socket < 0 || at + 1 >= count) {
    fputs("graft: bad arguments; this program is started by assay\n", stderr);
    return 125;
  }
  for (char** argument = command; *argument != nullptr; ++argument)
    fits = Append("argument", *argument) && fits;
  for (char** variable = environ; *variable != nullptr; ++variable)
    fits = Append("variable", *variable) && fits;
  int32_t started = -1;
  const bool was_dumpable = prctl(PR_GET_DUMPABLE) == 1;
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // the nursery looks at its limits and namespaces
  if (fits && Send(socket, descriptors, descriptor_count) && Receive(socket, &started) &&
      started == 0) {
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    for (int fd = 0; fd < 64; ++fd)
      if (fd != socket) close(fd);
    int32_t status = 0;
    if (!Receive(socket, &status)) EndAs(SIGKILL);
    EndAs(status);
  }
  prctl(PR_SET_DUMPABLE, was_dumpable ? 1 : 0, 0, 0, 0);
  close(socket);
  for (int i = 2; i < at - 1; i += 2)
    if (strcmp(arguments[i], "--filter") == 0) close(atoi(arguments[i + 1]));
  execve(command[0], command, environ);
  return 127;
}
