// The Landlock part of the tests' foreign code: exercises each right once, below a folder that
// holds file, doomed, program, from/file, to/ and empty/. Prints a line for each: its name, the ABI
// that has it, and 0 or errno.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>

#include "../../host/confine/landlock.h"

namespace {

int ErrnoOf(long result) { return result < 0 ? errno : 0; }

int Open(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  const int error = ErrnoOf(fd);
  if (fd >= 0) close(fd);
  return error;
}

int ReadFolder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return errno;
  closedir(folder);
  return 0;
}

int Execute(const std::string& path) {
  const pid_t pid = fork();
  if (pid == 0) {
    execl(path.c_str(), "probe", "exit", "0", nullptr);
    _exit(errno);
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : errno;
}

// A request that no device but a terminal knows.
int DeviceRequest() {
  const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char settings[256];
  return ErrnoOf(ioctl(fd, TCGETS, settings));
}

int Tcp(bool binds) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(binds ? 40321 : 9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  return ErrnoOf(binds ? bind(fd, where, sizeof address) : connect(fd, where, sizeof address));
}

int AbstractSocket(const std::string& name) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return ErrnoOf(connect(fd, reinterpret_cast<const sockaddr*>(&address), size));
}

int Node(const std::string& path, mode_t type, dev_t device) {
  return ErrnoOf(mknod(path.c_str(), type | 0600, device));
}

void MakeFixture(const std::string& folder) {
  for (const char* name : {"/from", "/to", "/empty"}) mkdir((folder + name).c_str(), 0700);
  for (const char* name : {"/file", "/doomed", "/from/file"}) Open(folder + name, O_CREAT | O_RDWR);
  // A link's target is executed where it lies: the right is needed there alone.
  if (symlink("/assay/probe", (folder + "/program").c_str()) != 0) return;
}

}  // namespace

// `folder` is /tmp, where this process makes its own fixture, or one that stands. `socket_name` is
// an abstract socket that listens outside.
int ExerciseLandlock(const std::string& folder, const std::string& socket_name) {
  if (folder == "/tmp") MakeFixture(folder);
  const auto in = [&](const char* name) { return folder + "/" + name; };
  // Removals last; a character device of numbers 0, 0 is one that anybody may make.
  const std::map<std::string, int> results = {
      {"execute", Execute(in("program"))},
      {"write_file", Open(in("file"), O_WRONLY)},
      {"read_file", Open(in("file"), O_RDONLY)},
      {"read_dir", ReadFolder(folder)},
      {"make_char", Node(in("character"), S_IFCHR, makedev(0, 0))},
      {"make_block", Node(in("block"), S_IFBLK, makedev(8, 0))},
      {"make_dir", ErrnoOf(mkdir(in("made").c_str(), 0700))},
      {"make_reg", Open(in("new"), O_WRONLY | O_CREAT | O_EXCL)},
      {"make_sock", Node(in("socket"), S_IFSOCK, 0)},
      {"make_fifo", ErrnoOf(mkfifo(in("fifo").c_str(), 0600))},
      {"make_sym", ErrnoOf(symlink("file", in("link").c_str()))},
      {"refer", ErrnoOf(rename(in("from/file").c_str(), in("to/file").c_str()))},
      {"truncate", ErrnoOf(truncate(in("file").c_str(), 0))},
      {"remove_dir", ErrnoOf(rmdir(in("empty").c_str()))},
      {"remove_file", ErrnoOf(unlink(in("doomed").c_str()))},
      {"ioctl_dev", DeviceRequest()},
      {"bind_tcp", Tcp(true)},
      {"connect_tcp", Tcp(false)},
      {"abstract_unix_socket", AbstractSocket(socket_name)},
      {"signal", ErrnoOf(kill(getppid(), 0))},
  };
  const LandlockRights rights = AllLandlockRights();
  for (size_t i = 0; i < rights.count; ++i) {
    const auto result = results.find(rights.begin[i].name);
    printf("%s %d %d\n", rights.begin[i].name, rights.begin[i].abi,
           result == results.end() ? -1 : result->second);
  }
  return 0;
}
