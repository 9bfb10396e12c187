// A profiler's report, which the candidate's process could write: whatever its bytes, figures are
// finite, shares are shares, and what is said of a damaged one is one line.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "toolchain/ncu.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto kernels = assay::ReadNcuReport({reinterpret_cast<const char*>(data), size});
  if (!kernels) {
    ASSAY_CHECK(!kernels.error().empty() && kernels.error().size() <= 400);
    ASSAY_CHECK(kernels.error().find('\n') == std::string::npos);
    return 0;
  }
  ASSAY_CHECK(!kernels->empty() && kernels->size() <= 32);
  double shares = 0;
  for (const assay::KernelProfile& kernel : *kernels) {
    ASSAY_CHECK(kernel.launches > 0 && kernel.name.size() <= 103);
    ASSAY_CHECK(kernel.cycles_share >= 0 && kernel.cycles_share <= 1);
    shares += kernel.cycles_share;
    for (const assay::KernelFigure& figure : assay::kKernelFigures) {
      const std::optional<double>& value = kernel.*figure.value;
      ASSAY_CHECK(!value || (std::isfinite(*value) && *value >= 0));
    }
    for (const auto& [reason, percent] : kernel.stalls)
      ASSAY_CHECK(percent > 0 && percent <= 100.001);
  }
  ASSAY_CHECK(shares <= 1.001);
  return 0;
}
