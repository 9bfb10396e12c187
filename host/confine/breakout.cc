// breakout: the sandbox's self-test. The judge runs it inside a sandbox, as it runs a candidate's
// host, before it trusts the sandbox with foreign code.
//
//   breakout tools|native JUDGE_PID ABSTRACT_SOCKET
//   breakout --list
//
// It greets the judge on descriptor 3 (the kernel adds its user id), makes its attempts, installs
// the lockdown of descriptor 4 on itself and makes the attempts that belong after it. One line each
// on stdout:
//   held NAME             the attempt failed, as it should
//   broke NAME WHAT       it worked
//   skipped NAME          this kernel's Landlock has nothing against it
//   last NAME             this one ends the process, if the sandbox holds
//   tried COUNT           all were made
// Exits with 0 whatever the results; with 125 if its arguments are wrong. In the sandbox of native
// hosts the last attempt is to start a process, so that SIGSYS is its proper end. --list prints the
// attempts as rows of the table in docs/sandbox.md.

#include "breakout.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

#include "../native/lockdown.h"

namespace assay::breakout {
namespace {

constexpr int kExitUsage = 125;
constexpr const char* kLastName = "locked-processes";

int LandlockAbi() {
  constexpr unsigned kVersion = 1;  // LANDLOCK_CREATE_RULESET_VERSION
  return static_cast<int>(
      syscall(SYS_landlock_create_ruleset, nullptr, static_cast<size_t>(0), kVersion));
}

template <typename Act>
void ForEachAttempt(Act act) {
  for (const Attempts attempts :
       {FileAttempts(), ProcessAttempts(), CallAttempts(), MemoryAttempts(), LockedAttempts()})
    for (size_t i = 0; i < attempts.count; ++i) act(attempts.begin[i]);
}

bool IsMade(const Attempt& attempt, bool native, bool locked) {
  switch (attempt.place) {
    case Place::kBoth:
      return !locked;
    case Place::kTools:
      return !locked && !native;
    case Place::kNative:
      return !locked && native;
    case Place::kLocked:
      return locked;
    case Place::kLockedTools:
      return locked && !native;
  }
  return false;
}

int MakeAttempts(const Given& given, bool native, bool locked) {
  const int landlock = LandlockAbi();
  int tried = 0;
  ForEachAttempt([&](const Attempt& attempt) {
    if (!IsMade(attempt, native, locked)) return;
    if (attempt.landlock > 0 && landlock < attempt.landlock) {
      printf("skipped %s\n", attempt.name);
      return;
    }
    // What is still to be printed must not be printed by a child, too.
    fflush(stdout);
    Successes successes;
    attempt.make(given, successes);
    if (successes.any())
      printf("broke %s %s\n", attempt.name, successes.text());
    else
      printf("held %s\n", attempt.name);
    ++tried;
  });
  return tried;
}

// By the code of the native host itself.
bool LockDown() {
  static native::LockdownProgram program;
  return native::ReadLockdown(kLockdownFd, program) && native::InstallLockdown(program);
}

[[noreturn]] void StartAProcess() {
  printf("last %s\n", kLastName);
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  printf("broke %s %s\n", kLastName, pid > 0 ? "fork" : "fork is refused, but does not kill");
  fflush(stdout);
  _exit(0);
}

int List() {
  ForEachAttempt([](const Attempt& attempt) {
    char needs[32] = "";
    if (attempt.landlock > 0) snprintf(needs, sizeof needs, "Landlock %d", attempt.landlock);
    printf("| `%s` | %s | %s |\n", attempt.name, attempt.means, needs);
  });
  return 0;
}

int Run(bool native, const Given& given) {
  if (send(kJudgeFd, native ? "n" : "t", 1, 0) != 1 || StartEarlyThread() != 0) return kExitUsage;
  int tried = MakeAttempts(given, native, false);
  if (!LockDown()) return kExitUsage;
  tried += MakeAttempts(given, native, true);
  printf("tried %d\n", tried);
  if (native) StartAProcess();
  fflush(stdout);
  return 0;
}

}  // namespace
}  // namespace assay::breakout

int main(int count, char** arguments) {
  using namespace assay::breakout;
  if (count == 2 && strcmp(arguments[1], "--list") == 0) return List();
  if (count != 4) return kExitUsage;
  const bool native = strcmp(arguments[1], "native") == 0;
  if (!native && strcmp(arguments[1], "tools") != 0) return kExitUsage;
  return Run(native, {atoi(arguments[2]), arguments[3]});
}
