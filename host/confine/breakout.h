// The attempts of the sandbox's self-test: the first things that foreign code would try. Each is
// made for real, and does no harm if it succeeds. libc only.
#pragma once

#include <stddef.h>
#include <string.h>
#include <sys/types.h>

namespace assay::breakout {

// The successes of an attempt, as text. Empty: the sandbox held.
class Successes {
 public:
  void Add(const char* what) {
    const size_t size = strlen(what), used = strlen(text_);
    if (used + size + 3 > sizeof text_ || Has(what, size)) return;
    if (used > 0) Append(", ");
    Append(what);
  }
  bool any() const { return text_[0] != '\0'; }
  const char* text() const { return text_; }

 private:
  bool Has(const char* what, size_t size) const {
    for (const char* at = text_; (at = strstr(at, what)) != nullptr; ++at)
      if ((at == text_ || at[-1] == ' ') && (at[size] == ',' || at[size] == '\0')) return true;
    return false;
  }
  void Append(const char* part) { memcpy(text_ + strlen(text_), part, strlen(part) + 1); }
  char text_[400] = "";
};

// The sandbox in which an attempt is made: that of tools, whose commands may start processes, or
// that of native hosts.
enum class Place {
  kBoth,
  kTools,
  kNative,
  kLocked,       // in both, after the lockdown
  kLockedTools,  // where the start of a process is refused, not punished by death
};

// The only descriptors that the judge passes.
constexpr int kJudgeFd = 3;     // a socket
constexpr int kLockdownFd = 4;  // the program that hosts install
constexpr int kSealedFd = 5;    // memory that hosts may only read
constexpr int kSizedFd = 6;     // memory that hosts may write
constexpr int kGivenFdMax = kSizedFd;

// Facts about the world outside, for the attempts.
struct Given {
  pid_t judge;         // its process id outside
  const char* socket;  // an abstract socket that listens outside
};

struct Attempt {
  const char* name;
  const char* means;  // the meaning of a success
  Place place;
  int landlock;  // the ABI that prevents it; 0: it must fail on every kernel
  void (*make)(const Given& given, Successes& successes);
};

struct Attempts {
  const Attempt* begin;
  size_t count;
};
Attempts FileAttempts();
Attempts ProcessAttempts();
Attempts CallAttempts();
Attempts MemoryAttempts();
Attempts LockedAttempts();

// Starts, before the lockdown, the thread that LockedAttempts tries to use after it. Returns 0, or
// errno.
int StartEarlyThread();

// Makes a call with arguments that no call accepts. Adds `name` if the call was not refused but
// looked at its arguments.
void TryCall(const char* name, long number, Successes& successes);

}  // namespace assay::breakout
