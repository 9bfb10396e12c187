// Measures a GPU's ceilings: bandwidth of its memory and L2 cache, arithmetic of its ordinary and
// matrix units, and the time of a launch. The kernels are Assay's own (src/gpu/ceiling_*.cu); the
// result of each is checked.
#pragma once

#include "doctor/gpu_meter.h"

namespace assay {

// Takes effort.all_s, and a second for each source that is not in the cache. Leaves clocks, power
// and modes as they are. Errors: kInterrupted; kEnvironment: the ordinary kernels do not compile,
// do not run, or compute a wrong result. A failure of the matrix units is a note.
Result<GpuCeilings> MeasureGpuCeilings(const Gpu& gpu, const KernelImages& images,
                                       const GpuEffort& effort, StopToken stop);

}  // namespace assay
