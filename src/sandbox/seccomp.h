// The seccomp programs of the sandbox: tables of rules, compiled by libseccomp into arrays of
// struct sock_filter. All kill a process that makes a system call of a foreign architecture (32-bit
// or x32), and know nothing of system calls newer than the reviewed ones. docs/sandbox.md lists the
// rules; seccomp_test.cc has a death test for each.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace assay {

enum class SeccompAnswer {
  kRefuse,  // EPERM
  kAbsent,  // ENOSYS
  kKill,    // the whole process, by SIGSYS
};

// When a rule depends on an argument (0 is the first).
struct SeccompCondition {
  enum Kind {
    kIs,      // its lower 32 bits are `value`; the kernel sees no more of it
    kIsNot,   // it differs from `value`
    kHas,     // has all bits of `value`
    kHasNot,  // has none of them
    kAbove,   // is larger than `value`
  };
  unsigned argument;
  Kind kind;
  uint64_t value;
};

struct SeccompRule {
  const char* call;
  SeccompAnswer answer;
  std::optional<SeccompCondition> condition;  // nullopt: whatever the arguments
};

// The sockets that a command may open: of its own machine's files alone, or those of the internet's
// families besides, which lead nowhere but to its own network namespace's loopback.
enum class SocketFamilies { kUnix, kUnixAndInternet };

// For every sandboxed command.
std::vector<SeccompRule> BaseRules(SocketFamilies families = SocketFamilies::kUnix);
// For a command that may not start processes: no fork or clone of processes. It may still exec,
// once it is itself: a host adds LockdownProgram (sandbox.h) before it runs foreign code.
std::vector<SeccompRule> NoProcessRules();
// Of LockdownProgram.
std::vector<SeccompRule> LockdownRules(bool kill);

// Negative: a call that this libseccomp or this architecture does not know; its rules are passed
// over.
int SystemCallNumber(const char* call);

// `refusal` is what kRefuse answers: a test takes an errno that no kernel gives, so that it knows
// the filter by it. Errors (kEnvironment): libseccomp fails.
Result<std::string> CompileRules(const std::vector<SeccompRule>& rules, int refusal = EPERM);

Result<std::string> BaseProgram(SocketFamilies families = SocketFamilies::kUnix);
Result<std::string> NoProcessProgram();

}  // namespace assay
