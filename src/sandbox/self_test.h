// The sandbox's self-test: `breakout` runs in two real sandboxes, one as for tools and python hosts
// and one as for native hosts, and tries to break out. docs/sandbox.md lists the attempts.
#pragma once

#include <string>

#include "base/result.h"
#include "base/seals.h"
#include "sandbox/launch.h"
#include "sandbox/sandbox.h"
#include "sandbox/support.h"

namespace assay {

// What the judge does besides the sandbox. Tests weaken it, to show that the self-test sees it.
struct SelfTestSetup {
  std::string tools_lockdown = LockdownProgram(false);
  std::string native_lockdown = LockdownProgram(true);
  bool own_uid = UidLease::Needed();  // a sandbox must have one
  int read_only_seals = kReadOnlySeals;
  int size_seals = kSizeSeals;
};

// Takes as long as a sandbox takes to start and end. Errors (kEnvironment): a sandbox does not
// start, or the self-test cannot be finished in it; the message says so.
Result<SelfTestReport> RunSelfTest(const SandboxTools& tools, const SelfTestSetup& setup = {});

}  // namespace assay
