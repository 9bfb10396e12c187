// Waits for a 32-bit word in shared memory to take a value, by spinning or on a futex.
// docs/protocol.md has the cost of each. libc only; safe in any thread.
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace assay::wire {

inline uint32_t LoadAcquire(const uint32_t& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

inline void WakeAll(uint32_t& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

// Stores the value and wakes all waiters. `wake` false saves the system call if the other side only
// spins.
inline void Ring(uint32_t& word, uint32_t value, bool wake) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  if (wake) WakeAll(word);
}

// Sleeps until `word` differs from `current`, a wake-up, a signal, or the time-out (negative:
// none). The caller must look again.
inline void FutexWait(const uint32_t& word, uint32_t current, int64_t timeout_ns) {
  timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  syscall(SYS_futex, &word, FUTEX_WAIT, current, timeout_ns < 0 ? nullptr : &timeout, nullptr, 0);
}

// Waits without limit until word == value: spins for `spin_count` looks, then sleeps on the futex.
inline void AwaitValue(const uint32_t& word, uint32_t value, uint64_t spin_count) {
  for (uint64_t look = 0; LoadAcquire(word) != value; ++look) {
    if (look < spin_count) {
      Pause();
      continue;
    }
    const uint32_t current = LoadAcquire(word);
    if (current != value) FutexWait(word, current, 100'000'000);
  }
}

}  // namespace assay::wire
