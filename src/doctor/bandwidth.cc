#include "doctor/bandwidth.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
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

// One core reaches what memory gives only with several streams at once and lines asked for ahead of
// their use: one plain stream can leave it at half, and kernels then beat the ceiling.
constexpr size_t kStreams = 8, kAhead = 16;

// Calls pass(i) for each line, in the order of `streams` parts that are walked side by side;
// `count` is a multiple of kStreams.
template <size_t streams, typename Pass>
[[gnu::always_inline]] inline void Walk(size_t count, Pass pass) {
  const size_t part = count / streams;
  for (size_t i = 0; i < part; ++i)
    for (size_t stream = 0; stream < streams; ++stream) pass(stream, stream * part + i);
}

double ReadOnce(const Arrays& arrays) {
  Line sums[4] = {};
  for (size_t i = 0; i + 4 <= arrays.count; i += 4)
    for (size_t k = 0; k < 4; ++k) sums[k] += arrays.b[i + k];
  const Line sum = sums[0] + sums[1] + sums[2] + sums[3];
  return sum[0] + sum[7];
}

double ReadStreams(const Arrays& arrays) {
  Line sums[kStreams] = {};
  Walk<kStreams>(arrays.count, [&](size_t stream, size_t i) {
    __builtin_prefetch(&arrays.b[i + kAhead]);
    sums[stream] += arrays.b[i];
  });
  Line sum{};
  for (const Line& each : sums) sum += each;
  return sum[0] + sum[7];
}

void Keep(double value) {
  volatile double kept = value;
  static_cast<void>(kept);
}

void Store(Line* target, const Line& line) {
#if defined(__SSE2__)
  const auto* from = reinterpret_cast<const double*>(&line);
  auto* to = reinterpret_cast<double*>(target);
  for (int k = 0; k < 8; k += 2) _mm_stream_pd(to + k, _mm_load_pd(from + k));
#else
  *target = line;
#endif
}

void Finish() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// Each kind of traffic in several ways, the best of which counts.
Pieces ReadsOf(const std::shared_ptr<Arrays>& arrays) {
  return {[arrays] { Keep(ReadOnce(*arrays)); }, [arrays] { Keep(ReadStreams(*arrays)); }};
}

Pieces CopiesOf(const std::shared_ptr<Arrays>& arrays) {
  return {[arrays] { std::memcpy(arrays->a.get(), arrays->b.get(), arrays->count * sizeof(Line)); },
          [arrays] {
            Walk<4>(arrays->count, [&](size_t, size_t i) { Store(&arrays->a[i], arrays->b[i]); });
            Finish();
          }};
}

Pieces TriadsOf(const std::shared_ptr<Arrays>& arrays) {
  return {[arrays] {
            for (size_t i = 0; i < arrays->count; ++i)
              arrays->a[i] = arrays->b[i] + 3.0 * arrays->c[i];
          },
          [arrays] {
            Walk<4>(arrays->count, [&](size_t, size_t i) {
              __builtin_prefetch(&arrays->b[i + kAhead]);
              __builtin_prefetch(&arrays->c[i + kAhead]);
              const Line line = arrays->b[i] + 3.0 * arrays->c[i];
              Store(&arrays->a[i], line);
            });
            Finish();
          }};
}

}  // namespace

Bandwidths MeasureBandwidth(std::span<const int> cpus, uint64_t array_bytes, int repeats) {
  const size_t count = std::max<size_t>(1, array_bytes / sizeof(Line) / kStreams) * kStreams;
  const double moved = static_cast<double>(count * sizeof(Line) * cpus.size());
  const std::vector<double> seconds = ShortestSeconds(cpus, repeats, [&](size_t) -> Pieces {
    const auto arrays = std::make_shared<Arrays>(
        Arrays{count, Touched(count, 0), Touched(count, 1), Touched(count, 2)});
    Pieces all = ReadsOf(arrays);
    for (const Pieces& more : {CopiesOf(arrays), TriadsOf(arrays)})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  });
  return {moved / std::min(seconds[0], seconds[1]), 2 * moved / std::min(seconds[2], seconds[3]),
          3 * moved / std::min(seconds[4], seconds[5])};
}

}  // namespace assay
