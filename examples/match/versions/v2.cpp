// v1: all six operators fused, a row at a time, plain C++ and the library's expf.
#include <assay/kernel.h>
#include <cmath>

ASSAY_KERNEL(assay::Tensor<const float, 2> student,  // [768, 1024]
             assay::Tensor<const float, 2> teacher,  // [768, 1024]
             assay::Tensor<float, 1> out) {          // [768]
  const long rows = student.size(0), n = student.size(1);
  for (long r = 0; r < rows; ++r) {
    const float* s = student.data() + r * n;
    const float* t = teacher.data() + r * n;
    float ms = s[0], mt = t[0];
    for (long i = 1; i < n; ++i) {
      ms = s[i] > ms ? s[i] : ms;
      mt = t[i] > mt ? t[i] : mt;
    }
    float zs = 0, zt = 0, sum = 0;
    for (long i = 0; i < n; ++i) {
      const float e = std::exp(t[i] - mt);
      zs += std::exp(s[i] - ms);
      zt += e;
      sum += e * ((t[i] - mt) - (s[i] - ms));
    }
    out.data()[r] = sum / zt - std::log(zt) + std::log(zs);
  }
}
