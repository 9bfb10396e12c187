// What a GPU's matrix units reach, by dtype, and its ordinary units in 16 bits.
#pragma once

#include "doctor/gpu_meter.h"

namespace assay {

// Adds "tensor_float16", "tensor_bfloat16", "tensor_tf32", "tensor_float8", "tensor_float64",
// "float16" and "bfloat16" to found->arithmetic, as far as the architecture has them. Products are
// of random operands. sm_90a is measured by wgmma; whatever has no right result that way, and every
// other architecture, by mma.sync. What does not compile, run or compute what it must has no rate,
// and a note says so. Errors: kInterrupted alone.
Result<void> AddProducts(GpuMeter& meter, const KernelImages& images, GpuCeilings* found);

}  // namespace assay
