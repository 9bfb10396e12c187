// Attempts on the judge's shared memory that its seals must refuse.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "breakout.h"

namespace assay::breakout {
namespace {

constexpr size_t kPageBytes = 4096;

void* Map(int fd, int protection) {
  void* memory = mmap(nullptr, kPageBytes, protection, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void TryResizing(int fd, Successes& successes) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    successes.Add("it cannot be looked at");
    return;
  }
  if (ftruncate(fd, status.st_size - 1) == 0) successes.Add("shrinking");
  if (ftruncate(fd, status.st_size + 1) == 0) successes.Add("growing");
  if (fallocate(fd, 0, status.st_size, 1) == 0) successes.Add("fallocate beyond its end");
  if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0) successes.Add("a further seal");
}

void TryWriting(int fd, Successes& successes) {
  if (pwrite(fd, "x", 1, 0) == 1) successes.Add("write");
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kPageBytes) == 0)
    successes.Add("a hole");
  if (void* memory = Map(fd, PROT_READ | PROT_WRITE); memory != nullptr) {
    successes.Add("a writable mapping");
    munmap(memory, kPageBytes);
  }
  void* memory = Map(fd, PROT_READ);
  if (memory == nullptr) {
    successes.Add("it cannot be mapped");
    return;
  }
  if (mprotect(memory, kPageBytes, PROT_READ | PROT_WRITE) == 0) successes.Add("mprotect");
  if (madvise(memory, kPageBytes, MADV_REMOVE) == 0) successes.Add("MADV_REMOVE");
  munmap(memory, kPageBytes);
}

void SealedMemory(const Given&, Successes& successes) {
  TryWriting(kSealedFd, successes);
  TryResizing(kSealedFd, successes);
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", kSealedFd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  TryWriting(fd, successes);
  close(fd);
  // O_TRUNC is a truncation of its own.
  if (const int empty = open(path, O_RDWR | O_TRUNC | O_CLOEXEC); empty >= 0) {
    successes.Add("O_TRUNC");
    close(empty);
  }
}

void SizedMemory(const Given&, Successes& successes) { TryResizing(kSizedFd, successes); }

constexpr Attempt kAttempts[] = {
    {"sealed-memory", "write to memory that the judge lets it read, or resize it", Place::kBoth, 0,
     SealedMemory},
    {"sized-memory", "resize memory that the judge lets it write", Place::kBoth, 0, SizedMemory},
};

}  // namespace

Attempts MemoryAttempts() { return {kAttempts, sizeof kAttempts / sizeof kAttempts[0]}; }

}  // namespace assay::breakout
