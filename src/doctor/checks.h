// What a judgement needs of the machine: one finding each.
#pragma once

#include <string>
#include <vector>

#include "doctor/doctor.h"

namespace assay {

// Helpers, compilers, sandbox, Python with PyTorch, memory, state folder; with a trial build of a
// kernel where there is a compiler and a sandbox. Errors: kInterrupted.
Result<std::vector<Finding>> CheckMachine(const std::string& python, StopToken stop);

// Whether PyTorch's matrix product is worth beating: its rate on one core beside the core's own.
// Debian's PyTorch without a fast BLAS reaches a few percent, and every speedup over it is hollow.
Result<Finding> CheckMatrixProduct(const std::string& python, double peak_operations_s,
                                   StopToken stop);

}  // namespace assay
