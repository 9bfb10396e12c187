#include "lockdown.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace assay::native {

bool ReadLockdown(int fd, LockdownProgram& program) {
  program.size_bytes = 0;
  while (true) {
    // One byte of room more than a program may have would be needed to see that it is too long:
    // read it apart.
    unsigned char overflow;
    const bool full = program.size_bytes == kProgramBytesMax;
    void* into = full ? &overflow : program.bytes + program.size_bytes;
    const ssize_t count = read(fd, into, full ? 1 : kProgramBytesMax - program.size_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    if (full) {
      errno = E2BIG;
      return false;
    }
    program.size_bytes += static_cast<uint32_t>(count);
  }
  close(fd);
  if (program.size_bytes % sizeof(sock_filter) != 0) {
    errno = EINVAL;
    return false;
  }
  return true;
}

bool InstallLockdown(const LockdownProgram& program) {
  if (program.size_bytes == 0) return true;
  sock_fprog filter{};
  filter.len = static_cast<unsigned short>(program.size_bytes / sizeof(sock_filter));
  filter.filter = reinterpret_cast<sock_filter*>(const_cast<unsigned char*>(program.bytes));
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  const long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                              SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter);
  if (result > 0) errno = EACCES;  // the id of a thread that could not follow
  return result == 0;
}

}  // namespace assay::native
