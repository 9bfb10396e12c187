// Checks the machine for everything that a judgement needs; one finding each.
#pragma once

#include <string>
#include <vector>

#include "doctor/doctor.h"

namespace assay {

// Checks helpers, compilers, sandbox, Python with PyTorch, memory and state folder; builds a kernel
// if there is a compiler and a sandbox. Errors: kInterrupted.
Result<std::vector<DoctorFinding>> CheckMachine(const std::string& python, StopToken stop);

struct MatrixProduct {
  double share = 0;  // PyTorch's rate over the core's own; 0: not known
  DoctorFinding finding;
};

// Compares the rate of PyTorch's matrix product on one core with the core's own. Debian's PyTorch
// without a fast BLAS reaches a few percent, and every speedup over it is hollow. Errors:
// kInterrupted.
Result<MatrixProduct> CheckMatrixProduct(const std::string& python, double peak_operations_s,
                                         StopToken stop);

}  // namespace assay
