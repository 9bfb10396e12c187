// The seccomp program that the judge hands over: installed on every thread before foreign code is
// loaded.
#pragma once

#include <stdint.h>

namespace assay::native {

// BPF_MAXINSNS instructions of 8 bytes.
inline constexpr uint32_t kProgramBytesMax = 4096 * 8;

struct LockdownProgram {
  alignas(8) unsigned char bytes[kProgramBytesMax];
  uint32_t size_bytes;  // 0: there is nothing to install
};

// Reads the whole descriptor and closes it. False (with errno) when it cannot be read or is no
// program.
bool ReadLockdown(int fd, LockdownProgram& program);

// Installs it on all threads of this process, for good. False (with errno) when the system refuses.
bool InstallLockdown(const LockdownProgram& program);

}  // namespace assay::native
