// The file, network and signal rules that a process puts on itself before it runs foreign code.
// libc only.
#pragma once

#include <stddef.h>

// A right that Landlock can take away, and where it is left.
struct LandlockRight {
  enum class Kind { kFile, kNetwork, kScope };
  enum class Left {
    kEverywhere,       // to read and execute whatever is visible
    kScratch,          // below /tmp
    kScratchAndSinks,  // and for /dev/null, /dev/zero and /dev/full
    kNowhere,
  };
  const char* name;
  Kind kind;
  unsigned bit;  // of the kernel's mask for this kind
  int abi;       // the first that has it
  Left left;
};
struct LandlockRights {
  const LandlockRight* begin;
  size_t count;
};
LandlockRights AllLandlockRights();

// Takes the rights away, as far as this kernel's Landlock goes; `devices`, which ends with a null,
// names nodes that may still be read, written and controlled; `loopback`: TCP is left, for a
// network namespace of its own. Returns 0, also where the kernel has no Landlock, or errno.
// Requires no_new_privs.
int ApplyLandlock(const char* const* devices, bool loopback);
