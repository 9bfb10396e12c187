// A lock that needs the C library alone, for what is preloaded into foreign processes.
#pragma once

#include <sched.h>

class SpinLocked {
 public:
  explicit SpinLocked(char* lock) : lock_(lock) {
    // Then the core is given to who may hold it.
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
