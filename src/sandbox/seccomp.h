// The seccomp programs of the sandbox: tables of rules, compiled by libseccomp into arrays of
// struct sock_filter. All kill a process that makes a system call of a foreign architecture (32-bit
// or x32), and answer ENOSYS to system calls newer than the reviewed ones. docs/sandbox.md lists
// the rules; seccomp_test.cc has a death test for each.
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

// A condition of a rule on one argument (0 is the first).
struct SeccompCondition {
  enum Kind {
    kIs,      // its lower 32 bits are `value`; the kernel uses no more of it
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
  std::optional<SeccompCondition> condition;  // nullopt: with any arguments
};

// The sockets that a command may open: Unix sockets alone, or internet sockets, too, which reach
// only the loopback of its own network namespace.
enum class SocketFamilies { kUnix, kUnixAndInternet };

// For every sandboxed command.
std::vector<SeccompRule> BaseRules(SocketFamilies families = SocketFamilies::kUnix);
// For a command that may not start processes: no fork or clone of processes. Exec stays allowed, as
// confine needs it; a host adds LockdownProgram (sandbox.h) before it runs foreign code.
std::vector<SeccompRule> NoProcessRules();
// Of LockdownProgram.
std::vector<SeccompRule> LockdownRules(bool kill);

// Returns the number of a system call; negative if this libseccomp or this architecture does not
// know it, and then its rules are skipped.
int SystemCallNumber(const char* call);

// `refusal`: the errno that kRefuse answers. A test takes one that no kernel gives, to recognise
// the filter. Errors (kEnvironment): libseccomp fails.
Result<std::string> CompileRules(const std::vector<SeccompRule>& rules, int refusal = EPERM);

Result<std::string> BaseProgram(SocketFamilies families = SocketFamilies::kUnix);
Result<std::string> NoProcessProgram();

}  // namespace assay
