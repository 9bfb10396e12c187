// Measures the arithmetic rate of this machine's cores: fused multiply-adds in registers.
#pragma once

#include <map>
#include <span>
#include <string>

namespace assay {

// Operations a second (a multiply-add is two) of all cores together, by instruction set: those of
// "sse2", "avx2" and "avx512f" that the processor has, or "native" elsewhere. Twelve independent
// chains cover the latency of two units.
struct ArithmeticRates {
  std::map<std::string, double> float32_operations_s, float64_operations_s;
};
ArithmeticRates MeasureArithmetic(std::span<const int> cpus, int repeats);

}  // namespace assay
