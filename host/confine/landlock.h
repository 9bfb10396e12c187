// Restricts a process's own access to files, network and signals before it runs foreign code. libc
// only.
#pragma once

#include <stddef.h>

// A right that Landlock can take away, and the places where it remains.
struct LandlockRight {
  enum class Kind { kFile, kNetwork, kScope };
  enum class Left {
    kEverywhere,       // to read and execute any visible file
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

// Takes the rights away, as far as this kernel's Landlock can. `devices`, which ends with a null,
// names nodes that may still be read, written and controlled. `loopback`: TCP remains, for a
// process in its own network namespace. Returns 0, even if the kernel has no Landlock, or errno.
// Requires no_new_privs.
int ApplyLandlock(const char* const* devices, bool loopback);
