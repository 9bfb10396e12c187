// How fast gate 1 looks at the outputs of a timed call: bytes of candidate and reference a second.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/gate1.h"
#include "model/dtype.h"

namespace assay {
namespace {

// Values between 0.5 and 1.5 in any floating-point dtype, and the same with an error of one
// rounding here and there.
struct Buffers {
  std::vector<unsigned char> candidate, reference;
};

template <typename T>
void Store(std::vector<unsigned char>* bytes, int64_t index, T value) {
  std::memcpy(bytes->data() + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
}

Buffers Fill(DType dtype, int64_t count) {
  Buffers buffers;
  const size_t bytes = static_cast<size_t>(count) * wire::ElementBytes(dtype);
  buffers.candidate.resize(bytes);
  buffers.reference.resize(bytes);
  uint64_t state = 88172645463325252U;
  for (int64_t i = 0; i < count; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const double value = 0.5 + static_cast<double>(state >> 11) * 0x1p-53;
    const auto half =
        static_cast<uint16_t>(0x3800U + (state >> 54));  // the middle binade, in both half formats
    for (auto* side : {&buffers.reference, &buffers.candidate}) {
      const bool moved = side == &buffers.candidate && i % 3 == 0;
      if (dtype == DType::kFloat64) Store(side, i, moved ? std::nextafter(value, 2.0) : value);
      if (dtype == DType::kFloat32)
        Store(side, i,
              moved ? std::nextafter(static_cast<float>(value), 2.0F) : static_cast<float>(value));
      if (wire::ElementBytes(dtype) == 2)
        Store(side, i, static_cast<uint16_t>(moved ? half ^ 1U : half));
    }
  }
  return buffers;
}

void Compare(benchmark::State& state, DType dtype, const CompareRule& rule) {
  const int64_t row = state.range(0);
  const int64_t bytes_each = state.range(1) << 20;
  const int64_t count = bytes_each / wire::ElementBytes(dtype) / row * row;
  const Buffers buffers = Fill(dtype, count);
  OutputView view;
  view.name = "out";
  view.dtype = dtype;
  view.shape = {count / row, row};
  view.count = count;
  view.candidate = buffers.candidate.data();
  view.reference = buffers.reference.data();
  for (auto _ : state) {
    const OutputComparison comparison = CompareWithReference(view, rule, {1e-7, 1e-7});
    if (!comparison.passed) state.SkipWithError("an output that is right must pass");
    benchmark::DoNotOptimize(comparison);
  }
  state.SetBytesProcessed(state.iterations() * 2 * bytes_each);
}

// Gate 1's draws, and timed calls of candidates in a class below the output's own: the precise
// scan.
void ComparePrecisely(benchmark::State& state) {
  const int64_t row = state.range(0);
  const int64_t bytes_each = state.range(1) << 20;
  const int64_t count = bytes_each / 4 / row * row;
  const Buffers buffers = Fill(DType::kFloat32, count);
  std::vector<double> oracle(static_cast<size_t>(count));
  for (size_t i = 0; i < oracle.size(); ++i) {
    float value;
    std::memcpy(&value, buffers.reference.data() + 4 * i, sizeof(value));
    oracle[i] = value;
  }
  OutputView view;
  view.name = "out";
  view.shape = {count / row, row};
  view.count = count;
  view.candidate = buffers.candidate.data();
  view.reference = buffers.reference.data();
  view.oracle = oracle.data();
  for (auto _ : state) {
    const OutputComparison comparison = CompareWithOracle(view, {}, nullptr);
    if (!comparison.passed) state.SkipWithError("an output that is right must pass");
    benchmark::DoNotOptimize(comparison);
  }
  state.SetBytesProcessed(state.iterations() * 4 * bytes_each);
}

CompareRule Native(DType dtype) {
  CompareRule rule;
  rule.required = NativeClass(dtype);
  return rule;
}

CompareRule Close() {
  CompareRule rule;
  rule.allclose = AllClose{1e-4, 1e-4};
  return rule;
}

// Memory speed, to compare with: adds up the words of both buffers.
void Read(benchmark::State& state) {
  const int64_t words = state.range(0) << 17;
  const std::vector<uint64_t> first(static_cast<size_t>(words), 1);
  const std::vector<uint64_t> second(static_cast<size_t>(words), 2);
  for (auto _ : state) {
    uint64_t sum = 0;
    for (size_t i = 0; i < first.size(); ++i) sum += first[i] ^ second[i];
    benchmark::DoNotOptimize(sum);
  }
  state.SetBytesProcessed(state.iterations() * 2 * (state.range(0) << 20));
}

// Arguments: elements of a row, MiB of each buffer.
BENCHMARK_CAPTURE(Compare, float32, DType::kFloat32, Native(DType::kFloat32))
    ->Args({4096, 1})
    ->Args({4096, 64})
    ->Args({64, 64})
    ->Args({16, 64})
    ->Args({1 << 24, 64});
BENCHMARK_CAPTURE(Compare, float64, DType::kFloat64, Native(DType::kFloat64))->Args({4096, 64});
BENCHMARK_CAPTURE(Compare, float16, DType::kFloat16, Native(DType::kFloat16))->Args({4096, 64});
BENCHMARK_CAPTURE(Compare, bfloat16, DType::kBFloat16, Native(DType::kBFloat16))->Args({4096, 64});
BENCHMARK_CAPTURE(Compare, float32_allclose, DType::kFloat32, Close())->Args({4096, 64});
BENCHMARK(ComparePrecisely)->Args({4096, 64})->Args({16, 64});
BENCHMARK(Read)->Arg(64);

}  // namespace
}  // namespace assay

BENCHMARK_MAIN();
