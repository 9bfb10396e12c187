#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <initializer_list>

namespace {

// The kernel's interface as of Landlock ABI 6, spelt out because a distribution's header may be
// older than its kernel.
struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};
struct __attribute__((packed)) PathRule {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr int kRulePathBeneath = 1;
constexpr uint32_t kCreateRulesetVersion = 1;

using Kind = LandlockRight::Kind;
using Left = LandlockRight::Left;

constexpr LandlockRight kRights[] = {
    {"execute", Kind::kFile, 0, 1, Left::kEverywhere},
    {"write_file", Kind::kFile, 1, 1, Left::kScratchAndSinks},
    {"read_file", Kind::kFile, 2, 1, Left::kEverywhere},
    {"read_dir", Kind::kFile, 3, 1, Left::kEverywhere},
    {"remove_dir", Kind::kFile, 4, 1, Left::kScratch},
    {"remove_file", Kind::kFile, 5, 1, Left::kScratch},
    {"make_char", Kind::kFile, 6, 1, Left::kNowhere},
    {"make_dir", Kind::kFile, 7, 1, Left::kScratch},
    {"make_reg", Kind::kFile, 8, 1, Left::kScratch},
    {"make_sock", Kind::kFile, 9, 1, Left::kScratch},
    {"make_fifo", Kind::kFile, 10, 1, Left::kScratch},
    {"make_block", Kind::kFile, 11, 1, Left::kNowhere},
    {"make_sym", Kind::kFile, 12, 1, Left::kScratch},
    {"refer", Kind::kFile, 13, 2, Left::kScratch},
    {"truncate", Kind::kFile, 14, 3, Left::kScratchAndSinks},
    {"ioctl_dev", Kind::kFile, 15, 5, Left::kNowhere},
    {"bind_tcp", Kind::kNetwork, 0, 4, Left::kNowhere},
    {"connect_tcp", Kind::kNetwork, 1, 4, Left::kNowhere},
    {"abstract_unix_socket", Kind::kScope, 0, 6, Left::kNowhere},
    {"signal", Kind::kScope, 1, 6, Left::kNowhere},
};

// The mask of those rights that the kernel has and `is_wanted` accepts.
template <typename Predicate>
uint64_t Mask(Kind kind, long abi, Predicate is_wanted) {
  uint64_t mask = 0;
  for (const LandlockRight& right : kRights)
    if (right.kind == kind && right.abi <= abi && is_wanted(right.left))
      mask |= uint64_t{1} << right.bit;
  return mask;
}

int Allow(int ruleset, const char* path, uint64_t rights) {
  const int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : errno;
  const PathRule rule{rights, fd};
  const long result = syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &rule, 0u);
  const int error = errno;
  close(fd);
  return result == 0 ? 0 : error;
}

int AddRules(int ruleset, long abi, const char* const* devices) {
  const uint64_t everywhere =
      Mask(Kind::kFile, abi, [](Left left) { return left == Left::kEverywhere; });
  int error = Allow(ruleset, "/", everywhere);
  const uint64_t scratch = Mask(Kind::kFile, abi, [](Left left) { return left != Left::kNowhere; });
  if (error == 0) error = Allow(ruleset, "/tmp", scratch);
  // A rule for a file takes none of the rights that only folders have.
  constexpr uint64_t kReadFile = uint64_t{1} << 2;
  const uint64_t sink =
      kReadFile | Mask(Kind::kFile, abi, [](Left left) { return left == Left::kScratchAndSinks; });
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full"})
    if (error == 0) error = Allow(ruleset, device, sink);
  // CUDA names its threads through /proc/self/task/*/comm, and does without the device where it
  // cannot (error 304). /proc/sys is mounted read-only.
  if (error == 0 && *devices != nullptr) error = Allow(ruleset, "/proc", sink & ~kReadFile);
  constexpr uint64_t kControl = uint64_t{1} << 15;
  const uint64_t control = sink | (kControl & Mask(Kind::kFile, abi, [](Left) { return true; }));
  for (; *devices != nullptr; ++devices)
    if (error == 0) error = Allow(ruleset, *devices, control);
  return error;
}

}  // namespace

LandlockRights AllLandlockRights() { return {kRights, sizeof kRights / sizeof kRights[0]}; }

int ApplyLandlock(const char* const* devices, bool loopback) {
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, kCreateRulesetVersion);
  if (abi < 1) return 0;
  const auto all = [](Left) { return true; };
  RulesetAttributes attributes{};
  attributes.handled_access_fs = Mask(Kind::kFile, abi, all);
  attributes.handled_access_net = loopback ? 0 : Mask(Kind::kNetwork, abi, all);
  attributes.scoped = Mask(Kind::kScope, abi, all);
  // An older kernel refuses a structure whose unknown tail is longer than it knows, unless that
  // tail is zero.
  const int ruleset =
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0u));
  if (ruleset < 0) return errno;
  int error = AddRules(ruleset, abi, devices);
  if (error == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0u) != 0) error = errno;
  close(ruleset);
  return error;
}
