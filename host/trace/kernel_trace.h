// What kernels the calls of a block run on the GPU, as CUPTI sees it from inside of this process,
// for native and python hosts. libc only.
#pragma once

#include "wire/types.h"

namespace assay::trace {

// From here on kernels are noted in `trace`, which is emptied first. Where they cannot be, that is
// what `trace` says, and Stop() does nothing. One trace at a time.
void Start(wire::KernelTrace* trace);

// Once the device has done its work: no kernel is noted any more, and `trace` is complete.
void Stop();

}  // namespace assay::trace
