// The attempts of the sandbox's self-test: what foreign code would try first, each made for real
// and harmless where it succeeds. libc only.
#pragma once

#include <stddef.h>
#include <string.h>
#include <sys/types.h>

namespace assay::breakout {

// What an attempt could do, as a list for people. Empty: the sandbox held.
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

// Where an attempt is made: in a sandbox of tools, whose commands may start processes, or in one of
// native hosts.
enum class Place {
  kBoth,
  kTools,
  kNative,
  kLocked,       // in both, after the lockdown
  kLockedTools,  // where starting a process is refused rather than killed
};

// Descriptors that the judge gives, and no other.
constexpr int kJudgeFd = 3;     // a socket
constexpr int kLockdownFd = 4;  // the program that hosts install
constexpr int kSealedFd = 5;    // memory that hosts may only read
constexpr int kSizedFd = 6;     // memory that hosts may write
constexpr int kGivenFdMax = kSizedFd;

// What the attempts know of the world outside.
struct Given {
  pid_t judge;         // its process id there
  const char* socket;  // abstract, listening there
};

struct Attempt {
  const char* name;
  const char* means;  // what a success would mean
  Place place;
  int landlock;  // the ABI that stands against it; 0: it must fail on every kernel
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

// Before the lockdown: the thread that LockedAttempts tries to use after it. 0, or errno.
int StartEarlyThread();

// Calls with arguments that no call accepts: adds `name` when the call was not refused but looked
// at its arguments.
void TryCall(const char* name, long number, Successes& successes);

}  // namespace assay::breakout
