// The sandbox's self-test: `breakout` tries to break out of two real sandboxes, one as for tools
// and python hosts, one as for native hosts. docs/sandbox.md lists the attempts.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/seals.h"
#include "sandbox/launch.h"
#include "sandbox/sandbox.h"
#include "sandbox/support.h"

namespace assay {

// The judge's measures besides the sandbox. Tests weaken them, to show that the self-test notices.
struct SelfTestSetup {
  std::string tools_lockdown = LockdownProgram(false);
  std::string native_lockdown = LockdownProgram(true);
  bool own_uid = UidLease::Needed();  // a sandbox must have one
  int read_only_seals = kReadOnlySeals;
  int size_seals = kSizeSeals;
  // Changes the request of the sandbox for tools and python hosts, before it begins.
  std::function<void(SandboxRequest*)> change = [](SandboxRequest*) {};
};

// Lasts about as long as one sandbox. Errors (kEnvironment): a sandbox does not start, or the
// self-test cannot be finished in it.
Result<SelfTestReport> RunSelfTest(const SandboxTools& tools, const SelfTestSetup& setup = {});

}  // namespace assay
