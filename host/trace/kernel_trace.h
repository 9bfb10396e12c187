// Records the kernels that a block's calls run on the GPU, by CUPTI inside this process, for native
// and python hosts. libc only.
#pragma once

#include "wire/types.h"

namespace assay::trace {

// Empties `trace` and begins to record kernels in it. If that is impossible, `trace` says so, and
// Stop() does nothing. One trace at a time.
void Start(wire::KernelTrace* trace);

// Ends the recording and completes `trace`. Call once the device has done its work.
void Stop();

}  // namespace assay::trace
