// Attempts after the lockdown that a host puts on itself before it runs foreign code.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <initializer_list>

#include "breakout.h"

namespace assay::breakout {
namespace {

bool TrySocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  close(ends[0]);
  close(ends[1]);
  return true;
}

// The thread that was there before: it waits, tries, and says what came of it.
class EarlyThread {
 public:
  int Start() { return pthread_create(&thread_, nullptr, Run, this); }
  bool Succeeds() {
    pthread_mutex_lock(&mutex_);
    go_ = true;
    pthread_cond_signal(&condition_);
    pthread_mutex_unlock(&mutex_);
    void* result = nullptr;
    pthread_join(thread_, &result);
    return result != nullptr;
  }

 private:
  static void* Run(void* self) {
    auto& thread = *static_cast<EarlyThread*>(self);
    pthread_mutex_lock(&thread.mutex_);
    while (!thread.go_) pthread_cond_wait(&thread.condition_, &thread.mutex_);
    pthread_mutex_unlock(&thread.mutex_);
    return TrySocketPair() ? self : nullptr;
  }

  pthread_t thread_{};
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
  bool go_ = false;
};
EarlyThread early_thread;

void LockedThreads(const Given&, Successes& successes) {
  if (early_thread.Succeeds()) successes.Add("a thread that was there before");
}

void LockedProcesses(const Given&, Successes& successes) {
  for (const bool by_fork : {true, false}) {
    const long pid = by_fork ? fork() : syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    if (pid < 0) continue;
    successes.Add(by_fork ? "fork" : "clone");
    waitpid(static_cast<pid_t>(pid), nullptr, 0);
  }
  TryCall("execve", SYS_execve, successes);
  TryCall("execveat", SYS_execveat, successes);
}

void LockedSockets(const Given&, Successes& successes) {
  if (TrySocketPair()) successes.Add("socketpair");
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) {
    successes.Add("socket");
    close(fd);
  }
  TryCall("connect", SYS_connect, successes);
  TryCall("bind", SYS_bind, successes);
  TryCall("listen", SYS_listen, successes);
  TryCall("accept4", SYS_accept4, successes);
}

// SIGCONT wakes a stopped process whoever sends it, also from a timer, a queue or a descriptor.
void LockedWakers(const Given&, Successes& successes) {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGCONT;
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) successes.Add("timer_create");
  TryCall("mq_open", SYS_mq_open, successes);
  TryCall("mq_notify", SYS_mq_notify, successes);
  if (prctl(PR_SET_PDEATHSIG, 0) == 0) successes.Add("PR_SET_PDEATHSIG");
  if (fcntl(kJudgeFd, F_SETSIG, SIGCONT) == 0) successes.Add("F_SETSIG");
  if (fcntl(kJudgeFd, F_SETOWN, getpid()) == 0) successes.Add("F_SETOWN");
  // The kernel looks at the lower half of such an argument only.
  constexpr long kUpperHalf = 1L << 32;
  const long process = getpid(), thread = gettid();
  if (syscall(SYS_kill, process, SIGCONT) == 0) successes.Add("kill");
  if (syscall(SYS_kill, process, kUpperHalf | SIGCONT) == 0) successes.Add("kill with a high bit");
  if (syscall(SYS_tkill, thread, SIGCONT) == 0) successes.Add("tkill");
  if (syscall(SYS_tgkill, process, thread, SIGCONT) == 0) successes.Add("tgkill");
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  if (syscall(SYS_rt_sigqueueinfo, process, SIGCONT, &info) == 0) successes.Add("rt_sigqueueinfo");
  if (syscall(SYS_rt_tgsigqueueinfo, process, thread, SIGCONT, &info) == 0)
    successes.Add("rt_tgsigqueueinfo");
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, process, 0u));
  if (pidfd < 0) return;
  if (syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, nullptr, 0u) == 0)
    successes.Add("pidfd_send_signal");
  close(pidfd);
}

void LockedPriorities(const Given&, Successes& successes) {
  if (setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0)) == 0) successes.Add("setpriority");
}

constexpr Attempt kAttempts[] = {
    {"locked-threads", "keep a thread that the lockdown does not reach", Place::kLocked, 0,
     LockedThreads},
    {"locked-sockets", "open a socket after the lockdown", Place::kLocked, 0, LockedSockets},
    {"locked-wakers", "wake a stopped host after the lockdown", Place::kLocked, 0, LockedWakers},
    {"locked-priorities", "change priorities after the lockdown", Place::kLocked, 0,
     LockedPriorities},
    {"locked-processes", "start a process after the lockdown", Place::kLockedTools, 0,
     LockedProcesses},
};

}  // namespace

Attempts LockedAttempts() { return {kAttempts, sizeof kAttempts / sizeof kAttempts[0]}; }

int StartEarlyThread() { return early_thread.Start(); }

}  // namespace assay::breakout
