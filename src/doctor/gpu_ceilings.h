// What a GPU reaches: traffic of its memory and its L2 cache, arithmetic of its ordinary and its
// matrix units, and what a launch takes. The kernels are Assay's own (src/gpu/ceiling_*.cu); what
// each computes is compared with what it must be.
#pragma once

#include "doctor/gpu_meter.h"

namespace assay {

// Takes effort.all_s, and a second for each source that was not compiled before. Clocks, power and
// modes stay as they are. Errors: kInterrupted; kEnvironment where the ordinary kernels do not
// compile or run, or what they compute is wrong. What the matrix units refuse is a note.
Result<GpuCeilings> MeasureGpuCeilings(const Gpu& gpu, const KernelImages& images,
                                       const GpuEffort& effort, StopToken stop);

}  // namespace assay
