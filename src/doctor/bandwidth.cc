#include "doctor/bandwidth.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "doctor/team.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace assay {
namespace {

using Line = double __attribute__((vector_size(64)));

struct Free {
  void operator()(Line* lines) const { std::free(lines); }
};
using Lines = std::unique_ptr<Line[], Free>;

// Written once, so that every page is the thread's own and exists.
Lines Touched(size_t count, double value) {
  constexpr size_t kHugePage = 2 << 20;
  const size_t bytes = (count * sizeof(Line) + kHugePage - 1) / kHugePage * kHugePage;
  Lines lines(static_cast<Line*>(std::aligned_alloc(kHugePage, bytes)));
  if (!lines) throw std::bad_alloc();
  for (size_t i = 0; i < count; ++i) lines[i] = Line{} + value;
  return lines;
}

struct Arrays {
  size_t count;
  Lines a, b, c;
};

double Read(const Arrays& arrays) {
  Line sums[4] = {};
  for (size_t i = 0; i + 4 <= arrays.count; i += 4)
    for (size_t k = 0; k < 4; ++k) sums[k] += arrays.b[i + k];
  const Line sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[7];
}

void Copy(const Arrays& arrays) {
  for (size_t i = 0; i < arrays.count; ++i) arrays.a[i] = arrays.b[i];
}

void Triad(const Arrays& arrays) {
  for (size_t i = 0; i < arrays.count; ++i) arrays.a[i] = arrays.b[i] + 3.0 * arrays.c[i];
}

#if defined(__SSE2__)
void Stream(Line* target, const Line& line) {
  const auto* from = reinterpret_cast<const double*>(&line);
  auto* to = reinterpret_cast<double*>(target);
  for (int k = 0; k < 8; k += 2) _mm_stream_pd(to + k, _mm_load_pd(from + k));
}
void StreamingCopy(const Arrays& arrays) {
  for (size_t i = 0; i < arrays.count; ++i) Stream(&arrays.a[i], arrays.b[i]);
  _mm_sfence();
}
void StreamingTriad(const Arrays& arrays) {
  for (size_t i = 0; i < arrays.count; ++i) {
    const Line line = arrays.b[i] + 3.0 * arrays.c[i];
    Stream(&arrays.a[i], line);
  }
  _mm_sfence();
}
#else
constexpr auto StreamingCopy = Copy;
constexpr auto StreamingTriad = Triad;
#endif

}  // namespace

Bandwidths MeasureBandwidth(std::span<const int> cpus, uint64_t array_bytes, int repeats) {
  const size_t count = std::max<size_t>(4, array_bytes / sizeof(Line) / 4 * 4);
  const double moved = static_cast<double>(count * sizeof(Line) * cpus.size());
  const std::vector<double> seconds = ShortestSeconds(cpus, repeats, [&](size_t) -> Pieces {
    const auto arrays = std::make_shared<Arrays>(
        Arrays{count, Touched(count, 0), Touched(count, 1), Touched(count, 2)});
    return {[arrays] {
              volatile double kept = Read(*arrays);
              static_cast<void>(kept);
            },
            [arrays] { Copy(*arrays); }, [arrays] { StreamingCopy(*arrays); },
            [arrays] { Triad(*arrays); }, [arrays] { StreamingTriad(*arrays); }};
  });
  return {moved / seconds[0], 2 * moved / std::min(seconds[1], seconds[2]),
          3 * moved / std::min(seconds[3], seconds[4])};
}

}  // namespace assay
