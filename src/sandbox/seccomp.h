// The seccomp programs of the sandbox, compiled by libseccomp into arrays of struct sock_filter.
// Both kill a process that makes a system call of a foreign architecture (32-bit or x32).
// docs/sandbox.md lists the rules.
#pragma once

#include <string>

#include "base/result.h"

namespace assay {

// For every sandboxed command. Errors (kEnvironment): libseccomp fails.
Result<std::string> BaseProgram();

// For a command that may not start processes: no fork or clone of processes (EPERM). It may still
// exec, once it is itself: a host adds LockdownProgram (sandbox.h) before it runs foreign code.
Result<std::string> NoProcessProgram();

}  // namespace assay
