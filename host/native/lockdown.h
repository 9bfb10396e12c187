// Installs the judge's seccomp program on every thread, before foreign code is loaded.
#pragma once

#include <stdint.h>

namespace assay::native {

// BPF_MAXINSNS instructions of 8 bytes.
inline constexpr uint32_t kProgramBytesMax = 4096 * 8;

struct LockdownProgram {
  alignas(8) unsigned char bytes[kProgramBytesMax];
  uint32_t size_bytes;  // 0: nothing to install
};

// Reads the whole descriptor and closes it. Returns false (with errno) if it cannot be read or
// holds no program.
bool ReadLockdown(int fd, LockdownProgram& program);

// Installs it on all threads of this process, for good. Returns false (with errno) if the system
// refuses.
bool InstallLockdown(const LockdownProgram& program);

}  // namespace assay::native
