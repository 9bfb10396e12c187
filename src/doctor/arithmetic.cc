#include "doctor/arithmetic.h"

#include <array>
#include <cstdint>
#include <functional>

#include "doctor/team.h"

namespace assay {
namespace {

constexpr int kChains = 12;
constexpr int64_t kRounds = 2'000'000;

template <typename Scalar, int kBytes>
struct Vector {
  using Type __attribute__((vector_size(kBytes))) = Scalar;
};

// Inlined into functions that are compiled for one instruction set each. The factor keeps values
// bounded; the compiler cannot know it.
template <typename Scalar, int kBytes>
[[gnu::always_inline]] inline double Chains(Scalar factor, Scalar summand) {
  using Lanes = typename Vector<Scalar, kBytes>::Type;
  Lanes chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = Lanes{} + static_cast<Scalar>(i);
  const Lanes factors = Lanes{} + factor;
  const Lanes summands = Lanes{} + summand;
  for (int64_t round = 0; round < kRounds; ++round)
    for (Lanes& chain : chains) chain = chain * factors + summands;
  Lanes sum = chains[0];
  for (int i = 1; i < kChains; ++i) sum += chains[i];
  return static_cast<double>(sum[0]);
}

using Kernel = double (*)(double factor, double summand);

struct Instructions {
  const char* name;
  int bytes;
  bool present;
  Kernel float32, float64;
};

#if defined(__x86_64__)
double Sse2Float32(double f, double s) {
  return Chains<float, 16>(static_cast<float>(f), static_cast<float>(s));
}
double Sse2Float64(double f, double s) { return Chains<double, 16>(f, s); }
[[gnu::target("avx2,fma")]] double Avx2Float32(double f, double s) {
  return Chains<float, 32>(static_cast<float>(f), static_cast<float>(s));
}
[[gnu::target("avx2,fma")]] double Avx2Float64(double f, double s) {
  return Chains<double, 32>(f, s);
}
[[gnu::target("avx512f")]] double Avx512Float32(double f, double s) {
  return Chains<float, 64>(static_cast<float>(f), static_cast<float>(s));
}
[[gnu::target("avx512f")]] double Avx512Float64(double f, double s) {
  return Chains<double, 64>(f, s);
}

std::array<Instructions, 3> Known() {
  __builtin_cpu_init();
  return {{{"sse2", 16, true, Sse2Float32, Sse2Float64},
           {"avx2", 32, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"),
            Avx2Float32, Avx2Float64},
           {"avx512f", 64, __builtin_cpu_supports("avx512f") != 0, Avx512Float32, Avx512Float64}}};
}
#else
double NativeFloat32(double f, double s) {
  return Chains<float, 16>(static_cast<float>(f), static_cast<float>(s));
}
double NativeFloat64(double f, double s) { return Chains<double, 16>(f, s); }

std::array<Instructions, 1> Known() {
  return {{{"native", 16, true, NativeFloat32, NativeFloat64}}};
}
#endif

double RateOf(Kernel kernel, double lanes, std::span<const int> cpus, int repeats) {
  volatile double factor = 0.5, summand = 0.25;
  const double seconds = ShortestSeconds(cpus, repeats, [&](size_t) -> Pieces {
    return {[kernel, f = double{factor}, s = double{summand}] {
      volatile double kept = kernel(f, s);
      static_cast<void>(kept);
    }};
  })[0];
  return 2.0 * lanes * kChains * static_cast<double>(kRounds) * static_cast<double>(cpus.size()) /
         seconds;
}

}  // namespace

ArithmeticRates MeasureArithmetic(std::span<const int> cpus, int repeats) {
  ArithmeticRates rates;
  for (const Instructions& one : Known()) {
    if (!one.present) continue;
    rates.float32_operations_s[one.name] = RateOf(one.float32, one.bytes / 4.0, cpus, repeats);
    rates.float64_operations_s[one.name] = RateOf(one.float64, one.bytes / 8.0, cpus, repeats);
  }
  return rates;
}

}  // namespace assay
