// A lock that needs only the C library, for code that is preloaded into foreign processes.
#pragma once

#include <sched.h>

class SpinLocked {
 public:
  explicit SpinLocked(char* lock) : lock_(lock) {
    // After these, yields the core to the lock's holder.
    constexpr int kSpins = 100;
    for (int spins = 0; __atomic_test_and_set(lock_, __ATOMIC_ACQUIRE); ++spins)
      if (spins > kSpins) sched_yield();
  }
  ~SpinLocked() { __atomic_clear(lock_, __ATOMIC_RELEASE); }
  SpinLocked(const SpinLocked&) = delete;
  SpinLocked& operator=(const SpinLocked&) = delete;

 private:
  char* lock_;
};
