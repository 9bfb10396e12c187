// Measures the rates of a GPU's matrix units, by dtype, and of its ordinary units in 16 bits.
#pragma once

#include "doctor/gpu_meter.h"

namespace assay {

// Adds "tensor_float16", "tensor_bfloat16", "tensor_tf32", "tensor_float8", "tensor_float64",
// "float16" and "bfloat16" to found->arithmetic, as far as the architecture has them. Operands are
// random. Measures sm_90a by wgmma, or by mma.sync where wgmma gives no right result; every other
// architecture by mma.sync. A kernel that does not compile, does not run or gives a wrong result
// has no rate, and a note says so. Errors: kInterrupted alone.
Result<void> AddProducts(GpuMeter& meter, const KernelImages& images, GpuCeilings* found);

}  // namespace assay
