#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <initializer_list>

#include "breakout.h"

namespace assay::breakout {
namespace {

void TryOpen(const char* path, int flags, Successes& successes) {
  const int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
  if (fd < 0) return;
  successes.Add(path);
  close(fd);
}

void KernelSettings(const Given&, Successes& successes) {
  for (const char* path :
       {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
        "/proc/sys/vm/drop_caches", "/proc/sys/fs/suid_dumpable", "/proc/sysrq-trigger",
        "/sys/devices/system/cpu/cpu0/online", "/sys/devices/system/cpu/cpu1/online"})
    TryOpen(path, O_WRONLY, successes);
}

void SystemFiles(const Given&, Successes& successes) {
  for (const char* path : {"/usr/bin/env", "/etc/passwd", "/etc/group", "/etc/ld.so.cache",
                           "/assay/confine", "/assay/breakout"})
    TryOpen(path, O_WRONLY, successes);
}

void NewFiles(const Given&, Successes& successes) {
  for (const char* folder :
       {"/", "/usr/", "/usr/lib/", "/usr/local/", "/etc/", "/dev/", "/dev/shm/", "/dev/pts/",
        "/sys/", "/sys/devices/system/cpu/", "/proc/", "/assay/", "/run/", "/var/tmp/", "/home/"}) {
    char path[64];
    snprintf(path, sizeof path, "%sassay-breakout", folder);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) continue;
    successes.Add(folder);
    unlink(path);
    close(fd);
  }
}

// The folders that may be mounted writable. Landlock lets nothing but /tmp and the null devices be
// written even so, on the kernels that have it.
bool MayBeWritable(const char* point) {
  for (const char* known : {"/tmp", "/proc", "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                            "/dev/urandom", "/dev/tty", "/dev/pts"})
    if (strcmp(point, known) == 0) return true;
  return false;
}

void WritableMounts(const Given&, Successes& successes) {
  FILE* mounts = fopen("/proc/self/mountinfo", "re");
  if (mounts == nullptr) {
    successes.Add("mounts cannot be read");
    return;
  }
  char line[4096];
  while (fgets(line, sizeof line, mounts) != nullptr) {
    char point[1024], options[256];
    if (sscanf(line, "%*s %*s %*s %*s %1023s %255s", point, options) != 2) continue;
    const bool writable = strncmp(options, "ro", 2) != 0;
    // A mount point below what can be written could be led elsewhere before it is made.
    if ((writable && !MayBeWritable(point)) || strncmp(point, "/tmp/", 5) == 0)
      successes.Add(point);
    if (strstr(options, "nosuid") == nullptr) successes.Add("a mount with set-uid programs");
  }
  fclose(mounts);
}

// bubblewrap sets the new root up beside the old one; some releases could be led into it by a link.
void OldRoot(const Given&, Successes& successes) {
  for (const char* root : {"/oldroot", "/newroot", "/tmp/oldroot", "/proc/1/root/oldroot"}) {
    TryOpen(root, O_RDONLY | O_DIRECTORY, successes);
    if (symlink(root, "/tmp/breakout-link") != 0) continue;
    const int fd = open("/tmp/breakout-link/assay-breakout", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) {
      successes.Add(root);
      unlink("/tmp/breakout-link/assay-breakout");
      close(fd);
    }
    unlink("/tmp/breakout-link");
  }
}

void PrivateFiles(const Given&, Successes& successes) {
  for (const char* path :
       {"/etc/shadow", "/etc/hostname", "/etc/machine-id", "/etc/ssh", "/root", "/home", "/var",
        "/run", "/boot", "/srv", "/mnt", "/media", "/sys/kernel", "/sys/class", "/proc/kcore"})
    TryOpen(path, O_RDONLY, successes);
}

void Devices(const Given&, Successes& successes) {
  for (const char* path : {"/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts/ptmx"})
    TryOpen(path, O_WRONLY, successes);
}

void DeviceRequests(const Given&, Successes& successes) {
  const int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char settings[256];
  if (ioctl(fd, TCGETS, settings) == 0 || errno != EACCES) successes.Add("ioctl of a device");
  close(fd);
}

void DeviceNodes(const Given&, Successes& successes) {
  const struct {
    const char* name;
    mode_t mode;
    dev_t device;
  } nodes[] = {{"a character device", S_IFCHR, makedev(1, 1)},
               {"a block device", S_IFBLK, makedev(8, 0)}};
  for (const auto& node : nodes) {
    if (mknod("/tmp/breakout-node", node.mode | 0600, node.device) != 0) continue;
    successes.Add(node.name);
    unlink("/tmp/breakout-node");
  }
}

void ProcessFiles(const Given&, Successes& successes) {
  for (const char* path : {"/proc/self/comm", "/proc/self/oom_score_adj", "/proc/self/mem",
                           "/proc/self/coredump_filter", "/proc/self/timerslack_ns"})
    TryOpen(path, O_WRONLY, successes);
}

void Terminals(const Given&, Successes& successes) {
  char text[] = {6, 0};  // of TIOCLINUX: tells which console is in front
  if (ioctl(0, TIOCSTI, text) == 0 || errno != EPERM) successes.Add("TIOCSTI");
  if (ioctl(0, TIOCLINUX, text) >= 0 || errno != EPERM) successes.Add("TIOCLINUX");
}

constexpr Attempt kAttempts[] = {
    {"kernel-settings", "change settings of the kernel (core_pattern and the like)", Place::kBoth,
     0, KernelSettings},
    {"system-files", "write to the system's files or to Assay's", Place::kBoth, 0, SystemFiles},
    {"new-files", "create files outside of `/tmp`", Place::kBoth, 0, NewFiles},
    {"writable-mounts", "find a mount that can be written or holds set-uid programs", Place::kBoth,
     0, WritableMounts},
    {"old-root", "reach the host's root folder through bubblewrap's, or through a link to it",
     Place::kBoth, 0, OldRoot},
    {"private-files", "read the host's files", Place::kBoth, 0, PrivateFiles},
    {"device-nodes", "make device files", Place::kBoth, 0, DeviceNodes},
    {"terminals", "type into a terminal", Place::kBoth, 0, Terminals},
    {"devices", "write to devices other than the null devices", Place::kBoth, 1, Devices},
    {"process-files", "write to `/proc`", Place::kBoth, 1, ProcessFiles},
    {"device-requests", "send requests (ioctl) to devices", Place::kBoth, 5, DeviceRequests},
};

}  // namespace

Attempts FileAttempts() { return {kAttempts, sizeof kAttempts / sizeof kAttempts[0]}; }

}  // namespace assay::breakout
