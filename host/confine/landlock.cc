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

constexpr uint64_t kExecute = 1u << 0;
constexpr uint64_t kWriteFile = 1u << 1;
constexpr uint64_t kReadFile = 1u << 2;
constexpr uint64_t kReadFolder = 1u << 3;
constexpr uint64_t kMakeCharacterDevice = 1u << 6;
constexpr uint64_t kMakeBlockDevice = 1u << 11;
constexpr uint64_t kTruncate = 1u << 14;
constexpr uint64_t kIoctlDevice = 1u << 15;

// Rights that exist at each ABI, from 1 on; each ABI adds to the one before.
constexpr uint64_t kFileRights[] = {(1u << 13) - 1, (1u << 14) - 1, (1u << 15) - 1, (1u << 15) - 1,
                                    (1u << 16) - 1};
constexpr long kFileAbiMax = sizeof kFileRights / sizeof kFileRights[0];
constexpr uint64_t kBindAndConnectTcp = 3;               // ABI 4
constexpr uint64_t kScopeAbstractSocketsAndSignals = 3;  // ABI 6

int Allow(int ruleset, const char* path, uint64_t rights) {
  const int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? 0 : errno;
  const PathRule rule{rights, fd};
  const long result = syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &rule, 0u);
  const int error = errno;
  close(fd);
  return result == 0 ? 0 : error;
}

int AddRules(int ruleset, uint64_t handled) {
  int error = Allow(ruleset, "/", handled & (kExecute | kReadFile | kReadFolder));
  const uint64_t scratch = handled & ~(kMakeCharacterDevice | kMakeBlockDevice | kIoctlDevice);
  if (error == 0) error = Allow(ruleset, "/tmp", scratch);
  const uint64_t sink = handled & (kReadFile | kWriteFile | kTruncate);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full"})
    if (error == 0) error = Allow(ruleset, device, sink);
  return error;
}

}  // namespace

int ApplyLandlock() {
  const long abi = syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, kCreateRulesetVersion);
  if (abi < 1) return 0;
  RulesetAttributes attributes{};
  attributes.handled_access_fs = kFileRights[(abi < kFileAbiMax ? abi : kFileAbiMax) - 1];
  if (abi >= 4) attributes.handled_access_net = kBindAndConnectTcp;
  if (abi >= 6) attributes.scoped = kScopeAbstractSocketsAndSignals;
  // An older kernel refuses a structure whose unknown tail is longer than it knows, unless that
  // tail is zero.
  const int ruleset =
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0u));
  if (ruleset < 0) return errno;
  int error = AddRules(ruleset, attributes.handled_access_fs);
  if (error == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0u) != 0) error = errno;
  close(ruleset);
  return error;
}
