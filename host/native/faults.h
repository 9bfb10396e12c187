// Describes a fatal signal in the Report, then lets the process die of it. A diagnostic: a
// candidate can replace the handlers, and the judge believes only the exit status.
#pragma once

#include <assay/kernel.h>

#include "regions.h"
#include "wire/types.h"

namespace assay::native {

// The handler's data. It must outlive every signal, so there is one a process.
struct FaultContext {
  wire::Report* report;  // null: there is none
  const Regions* regions;
  const wire::Plan* plan;      // null while no plan is known
  volatile uint32_t call;      // index in order[] of the running call, or kNoCall
  volatile uint32_t slot;      // the slot of that call
  const char* volatile doing;  // "while loading the candidate", for faults outside of calls
};
inline constexpr uint32_t kNoCall = UINT32_MAX;

FaultContext& TheFaultContext();

// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT on an alternate stack of the calling thread.
// Returns false (with errno) if the system refuses.
bool InstallFaultHandlers();

}  // namespace assay::native
