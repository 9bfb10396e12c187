// The tests' foreign code: runs in the sandbox and tries one thing. Exits with 0 when it worked,
// with errno when it was refused, 99 when the arguments are wrong. Static, so that it needs nothing
// of the sandbox.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

int ErrnoOf(long result) { return result < 0 ? errno : 0; }

int Fork() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid(pid, nullptr, 0);
  return ErrnoOf(pid);
}

int VFork() {
  const pid_t pid = vfork();
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid(pid, nullptr, 0);
  return ErrnoOf(pid);
}

int CloneWith(unsigned long flags) {
  const long pid = syscall(SYS_clone, flags | SIGCHLD, nullptr, nullptr, nullptr, nullptr);
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid(static_cast<pid_t>(pid), nullptr, 0);
  return ErrnoOf(pid);
}

int Thread() {
  pthread_t thread;
  const int error = pthread_create(
      &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
  return error != 0 ? error : pthread_join(thread, nullptr);
}

int Timer() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  timer_t timer;
  return ErrnoOf(timer_create(CLOCK_MONOTONIC, &event, &timer));
}

int Affinity() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return ErrnoOf(sched_setaffinity(0, sizeof set, &set));
}

int Scheduler() {
  const sched_param parameters{};
  return ErrnoOf(sched_setscheduler(0, SCHED_BATCH, &parameters));
}

int SignalOwner() {
  int ends[2];
  return pipe(ends) != 0 ? errno : ErrnoOf(fcntl(ends[0], F_SETSIG, SIGCONT));
}

int SocketPair() {
  int ends[2];
  return ErrnoOf(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

int ConnectTo(uint32_t address, uint16_t port_in_network_order) {
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = port_in_network_order;
  peer.sin_addr.s_addr = htonl(address);
  if (client < 0) return errno;
  return ErrnoOf(connect(client, reinterpret_cast<const sockaddr*>(&peer), sizeof peer));
}

// Listens on a port of its own loopback, and connects to it.
int Loopback() {
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (server < 0 || bind(server, generic, size) != 0 || listen(server, 1) != 0 ||
      getsockname(server, generic, &size) != 0)
    return errno;
  return ConnectTo(INADDR_LOOPBACK, address.sin_port);
}

#if defined(__x86_64__)
// getpid through the 32-bit entry.
int Call32() {
  long result = 20;
  asm volatile("int $0x80" : "+a"(result) : : "memory");
  return result < 0 ? static_cast<int>(-result) : 0;
}
int CallX32() { return ErrnoOf(syscall(0x40000000 + SYS_getpid)); }
#else
int Call32() { return 99; }
int CallX32() { return 99; }
#endif

struct Call {
  const char* name;
  int (*make)();
};
const Call kCalls[] = {
    {"ptrace", [] { return ErrnoOf(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }},
    {"process_vm_readv",
     [] { return ErrnoOf(syscall(SYS_process_vm_readv, getpid(), nullptr, 0, nullptr, 0, 0)); }},
    {"keyctl", [] { return ErrnoOf(syscall(SYS_keyctl, 0, -3, 0, 0, 0)); }},
    {"bpf", [] { return ErrnoOf(syscall(SYS_bpf, 0, nullptr, 0)); }},
    {"perf_event_open",
     [] { return ErrnoOf(syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0)); }},
    {"userfaultfd", [] { return ErrnoOf(syscall(SYS_userfaultfd, 1)); }},
    {"io_uring_setup", [] { return ErrnoOf(syscall(SYS_io_uring_setup, 1, nullptr)); }},
    {"mount", [] { return ErrnoOf(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, nullptr)); }},
    {"chroot", [] { return ErrnoOf(chroot("/tmp")); }},
    {"unshare", [] { return ErrnoOf(unshare(CLONE_NEWUSER)); }},
    {"setns", [] { return ErrnoOf(setns(0, 0)); }},
    {"clone_newuser", [] { return CloneWith(CLONE_NEWUSER); }},
    {"clone3", [] { return ErrnoOf(syscall(SYS_clone3, nullptr, 0)); }},
    {"too_new", [] { return ErrnoOf(syscall(462, nullptr, 0, 0)); }},  // mseal
    {"socket_inet", [] { return ErrnoOf(socket(AF_INET, SOCK_STREAM, 0)); }},
    {"socket_netlink", [] { return ErrnoOf(socket(AF_NETLINK, SOCK_RAW, 0)); }},
    {"socket_unix", [] { return ErrnoOf(socket(AF_UNIX, SOCK_STREAM, 0)); }},
    {"socketpair", SocketPair},
    {"loopback", Loopback},
    // 192.0.2.1, which is nobody's (RFC 5737)
    {"connect_outside", [] { return ConnectTo(0xC0000201, htons(80)); }},
    {"tiocsti", [] { return ErrnoOf(ioctl(0, TIOCSTI, "x")); }},
    {"sched_setaffinity", Affinity},
    {"sched_setscheduler", Scheduler},
    {"setpriority_self", [] { return ErrnoOf(setpriority(PRIO_PROCESS, 0, 5)); }},
    {"setpriority_user", [] { return ErrnoOf(setpriority(PRIO_USER, 0, 5)); }},
    {"mlockall", [] { return ErrnoOf(mlockall(0)); }},
    {"memfd_create", [] { return ErrnoOf(memfd_create("x", 0)); }},
    {"personality_query", [] { return ErrnoOf(personality(0xffffffff)); }},
    {"personality_set", [] { return ErrnoOf(personality(ADDR_NO_RANDOMIZE)); }},
    {"name_to_handle_at",
     [] { return ErrnoOf(syscall(SYS_name_to_handle_at, AT_FDCWD, "/", nullptr, nullptr, 0)); }},
    {"reboot", [] { return ErrnoOf(syscall(SYS_reboot, 0, 0, 0, nullptr)); }},
    {"clock_settime", [] { return ErrnoOf(syscall(SYS_clock_settime, CLOCK_REALTIME, nullptr)); }},
    {"fork", Fork},
    {"vfork", VFork},
    {"thread", Thread},
    {"exec", [] { return execl("/proc/self/exe", "probe", "exit", "0", nullptr), errno; }},
    {"timer_create", Timer},
    {"fcntl_setsig", SignalOwner},
    {"pdeathsig", [] { return ErrnoOf(prctl(PR_SET_PDEATHSIG, SIGCONT)); }},
    {"undumpable", [] { return ErrnoOf(prctl(PR_SET_DUMPABLE, 0)); }},
    {"sched_core", [] { return ErrnoOf(prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, 0, 0)); }},
    {"inotify", [] { return ErrnoOf(inotify_init1(0)); }},
    {"fcntl_notify", [] { return ErrnoOf(fcntl(0, F_NOTIFY, DN_ACCESS)); }},
    {"kill_sigcont", [] { return ErrnoOf(kill(getpid(), SIGCONT)); }},
    {"tgkill_sigcont", [] { return ErrnoOf(syscall(SYS_tgkill, getpid(), gettid(), SIGCONT)); }},
    {"kill_parent", [] { return ErrnoOf(kill(getppid(), 0)); }},
    {"call_32_bit", Call32},
    {"call_x32", CallX32},
};

int MakeCall(const std::string& name) {
  for (const Call& call : kCalls)
    if (name == call.name) return call.make();
  return 99;
}

// CALL is NUMBER,ARGUMENT,... A line for each: 0 or errno.
int MakeCalls(char** calls) {
  for (; *calls != nullptr; ++calls) {
    long values[7] = {};
    char* at = *calls;
    for (long& value : values) {
      value = static_cast<long>(strtoull(at, &at, 0));
      if (*at == ',') ++at;
    }
    const long result =
        syscall(values[0], values[1], values[2], values[3], values[4], values[5], values[6]);
    const int error = ErrnoOf(result);
    const bool starts = values[0] == SYS_clone || values[0] == SYS_fork || values[0] == SYS_vfork;
    if (starts && result == 0) _exit(0);
    if (starts && result > 0) waitpid(static_cast<pid_t>(result), nullptr, 0);
    printf("%d\n", error);
    fflush(stdout);
  }
  return 0;
}

int Lockdown(int fd) {
  static sock_filter program[BPF_MAXINSNS];
  const ssize_t size = pread(fd, program, sizeof program, 0);
  if (size <= 0) return errno;
  const sock_fprog filter{
      static_cast<unsigned short>(static_cast<size_t>(size) / sizeof(sock_filter)), program};
  return ErrnoOf(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter));
}

int Open(const char* path, int flags) {
  const int fd = open(path, flags, 0644);
  return ErrnoOf(fd);
}

int MakeFile(const char* path, size_t size_bytes) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) return errno;
  const std::string block(1 << 16, 'x');
  while (size_bytes > 0) {
    const ssize_t count = write(fd, block.data(), std::min(size_bytes, block.size()));
    if (count < 0) return errno;
    size_bytes -= static_cast<size_t>(count);
  }
  return 0;
}

int PrintDescriptors() {
  DIR* folder = opendir("/proc/self/fd");
  std::vector<int> numbers;
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder))
      numbers.push_back(atoi(entry->d_name));
  std::sort(numbers.begin(), numbers.end());
  for (const int number : numbers) printf("%d ", number);
  return 0;
}

int Allocate(size_t size_bytes) {
  auto* memory = static_cast<volatile char*>(malloc(size_bytes));
  if (memory == nullptr) return ENOMEM;
  for (size_t i = 0; i < size_bytes; i += 4096) memory[i] = 1;
  return 0;
}

int MakeChildren(int count) {
  int made = 0;
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid == 0) pause();
    if (pid < 0) break;
    ++made;
  }
  printf("%d", made);
  return 0;
}

// Leaves `count` spinning daemons, out of this process's session and parentage.
int Daemonise(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid < 0) return errno;
    if (pid == 0) {
      setsid();
      signal(SIGTERM, SIG_IGN);
      if (fork() != 0) _exit(0);
      while (true) asm volatile("");
    }
    waitpid(pid, nullptr, 0);
  }
  return 0;
}

int Flood(size_t size_bytes) {
  const std::string block(1 << 16, 'y');
  while (size_bytes > 0) {
    const ssize_t count = write(1, block.data(), std::min(size_bytes, block.size()));
    if (count < 0) return errno;
    size_bytes -= static_cast<size_t>(count);
  }
  return 0;
}

int PrintStatus() {
  FILE* file = fopen("/proc/self/status", "r");
  for (char line[256]; fgets(line, sizeof line, file) != nullptr;) fputs(line, stdout);
  char host[64];
  gethostname(host, sizeof host);
  char folder[64];
  printf("Host: %s\nFolder: %s\nSession: %d\n", host, getcwd(folder, sizeof folder),
         getsid(0) == getppid());
  return 0;
}

}  // namespace

int ExerciseLandlock(const std::string& folder, const std::string& socket_name);

int main(int count, char** arguments) {
  const std::string verb = count > 1 ? arguments[1] : "";
  const char* first = count > 2 ? arguments[2] : "0";
  const char* second = count > 3 ? arguments[3] : "0";
  int result = 99;
  if (verb == "call") result = MakeCall(first);
  if (verb == "locked_call") result = Lockdown(atoi(first)) != 0 ? 98 : MakeCall(second);
  if (verb == "calls") result = MakeCalls(arguments + 2);
  if (verb == "locked_calls") result = Lockdown(atoi(first)) != 0 ? 98 : MakeCalls(arguments + 3);
  if (verb == "landlock") result = ExerciseLandlock(first, second);
  if (verb == "read") result = Open(first, O_RDONLY);
  if (verb == "write") result = Open(first, O_WRONLY);
  if (verb == "create") result = Open(first, O_WRONLY | O_CREAT);
  if (verb == "make_file") result = MakeFile(first, strtoull(second, nullptr, 10));
  if (verb == "link") result = ErrnoOf(symlink(first, second));
  if (verb == "descriptors") result = PrintDescriptors();
  if (verb == "allocate") result = Allocate(strtoull(first, nullptr, 10));
  if (verb == "children") result = MakeChildren(atoi(first));
  if (verb == "daemonise") result = Daemonise(atoi(first));
  if (verb == "daemonise_and_hang" && (result = Daemonise(atoi(first))) == 0) {
    puts("all started");
    fflush(stdout);
    pause();
  }
  if (verb == "flood") result = Flood(strtoull(first, nullptr, 10));
  if (verb == "status") result = PrintStatus();
  if (verb == "exit") result = atoi(first);
  if (verb == "signal") result = ErrnoOf(raise(atoi(first)));
  if (verb == "hang") result = pause();
  if (verb == "say") result = write(atoi(first), second, strlen(second)) < 0 ? errno : 0;
  if (verb == "environment") {
    for (char** entry = environ; *entry != nullptr; ++entry) puts(*entry);
    result = 0;
  }
  fflush(stdout);
  return result;
}
