// Tests the header that candidates include: what compiles, what must not, and how 16-bit values
// round.
#include <assay/kernel.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "base/files.h"

namespace assay::native {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Compilation {
  int status = -1;
  std::string output;
};

Compilation Compile(const std::string& compiler, const std::string& suffix,
                    const std::string& source) {
  Compilation result;
  auto folder = TemporaryFolder::Create();
  if (!folder) return result;
  const std::string path = (folder->path() / ("kernel" + suffix)).string();
  if (!WriteFileAtomically(path, source)) return result;
  const std::string command =
      fmt::format("{} -fPIC -shared -fvisibility=hidden -I{}/include {} -o {}.so 2>&1", compiler,
                  ASSAY_SOURCE_DIRECTORY, path, path);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (const size_t count = fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, count);
  result.status = pclose(pipe);
  return result;
}

constexpr const char* kCpp = R"(#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<const assay::float16, 1> h,
             assay::Tensor<const assay::bfloat16, 1> b, int64_t n, double scale, bool flag,
             assay::Tensor<float, 2> y, assay::Tensor<assay::float16, 0> z,
             assay::Tensor<const assay::float8_e5m2, 1> e, assay::Tensor<assay::float8_e4m3, 1> f) {
  f(0) = e(0);
  for (int64_t row = 0; row < x.size(0); ++row)
    for (int64_t column = 0; column < x.size(1); ++column)
      y(row, column) = x(row, column) * 2 + b(0);
  z() = flag ? h(0) : float(scale) * float(n);
  if (h(0) > 0) z() = h(0);
}
)";
constexpr const char* kC = R"(#include <assay/kernel.h>
ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 2, x), ASSAY_TENSOR(const assay_float16, 1, h),
               ASSAY_TENSOR(const assay_bfloat16, 1, b), ASSAY_SCALAR(int64_t, n),
               ASSAY_SCALAR(double, scale), ASSAY_SCALAR(bool, flag), ASSAY_TENSOR(float, 2, y),
               ASSAY_TENSOR(assay_float16, 0, z), ASSAY_TENSOR(const assay_float8_e5m2, 1, e),
               ASSAY_TENSOR(assay_float8_e4m3, 1, f)) {
  f[0] = assay_float_to_float8_e4m3(assay_float8_e5m2_to_float(e[0]));
  for (int64_t row = 0; row < x_size[0]; ++row)
    for (int64_t column = 0; column < x_size[1]; ++column)
      y[row * x_size[1] + column] = x[row * x_size[1] + column] * 2 + assay_bfloat16_to_float(b[0]);
  z[0] = flag ? h[0] : assay_float_to_float16((float)scale * (float)n);
}
)";

TEST(KernelHeader, CompilesInTheFourCompilersWithoutAWarning) {
  for (const char* compiler : {"g++ -std=c++17", "g++ -std=c++20", "g++ -std=c++23",
                               "clang++ -std=c++17", "clang++ -std=c++20", "clang++ -std=c++2b"})
    for (const char* flags : {"-O0", "-O2 -mf16c", "-O3 -ffast-math"}) {
      const Compilation result = Compile(
          fmt::format("{} {} -Wall -Wextra -Wpedantic -Wconversion -Wshadow", compiler, flags),
          ".cpp", kCpp);
      EXPECT_EQ(result.status, 0) << compiler;
      EXPECT_THAT(result.output, IsEmpty()) << compiler;
    }
  for (const char* compiler : {"gcc -std=c11", "gcc -std=c2x", "clang -std=c11", "clang -std=c2x"})
    for (const char* flags : {"-O0", "-O2 -mf16c", "-O3 -ffast-math"}) {
      const Compilation result = Compile(
          fmt::format("{} {} -Wall -Wextra -Wconversion -Wshadow", compiler, flags), ".c", kC);
      EXPECT_EQ(result.status, 0) << compiler;
      EXPECT_THAT(result.output, IsEmpty()) << compiler;
    }
}

// A candidate that is refused at compile time, and words that its first errors must hold.
struct Refused {
  const char* suffix;
  std::string source;
  const char* words;
};

TEST(KernelHeader, RefusesMistakesWithAClearLine) {
  const std::string include = "#include <assay/kernel.h>\n";
  const Refused cases[] = {
      {".cpp",
       include +
           "ASSAY_KERNEL(assay::Tensor<float, 1>) {}\nASSAY_KERNEL(assay::Tensor<float, 2>) {}\n",
       "redefinition of"},
      {".cpp", include + "ASSAY_KERNEL(assay::Tensor<assay::int4x2, 1>) {}\n",
       "packed 4-bit types are reserved"},
      {".cpp", include + "ASSAY_KERNEL(assay::Tensor<long double, 1>) {}\n",
       "the element type must be"},
      {".cpp", include + "ASSAY_KERNEL(assay::Tensor<float, 9>) {}\n", "the rank must be 0 to 8"},
      {".cpp", include + "ASSAY_KERNEL(int, assay::Tensor<float, 1>) {}\n",
       "int64_t, double or bool for a"},
      {".cpp", include + "ASSAY_KERNEL(assay::Tensor<float, 2> y) { y(1) = 0; }\n",
       "give one index for each axis"},
      {".cpp", include + "ASSAY_KERNEL(assay::Tensor<const float, 1> y) { y(1) = 0; }\n",
       "read-only|const"},
      {".cpp", include + "ASSAY_KERNEL_C(1) {}\n", "in C.., write ASSAY_KERNEL"},
      {".c", include + "ASSAY_KERNEL(x) {}\n", "in C, write ASSAY_KERNEL_C"},
      {".c",
       include + "ASSAY_KERNEL_C(ASSAY_TENSOR(float, 1, y)) { (void)y; }\n"
                 "ASSAY_KERNEL_C(ASSAY_TENSOR(float, 1, y)) { (void)y; }\n",
       "redefinition of"},
      {".c", include + "ASSAY_KERNEL_C(ASSAY_TENSOR(long double, 1, y)) { (void)y; }\n",
       "_Generic|controlling expression"},
  };
  for (const Refused& refused : cases)
    for (const char* compiler : {"gcc", "clang"}) {
      const bool c = std::string(refused.suffix) == ".c";
      const std::string command = std::string(compiler) + (c ? " -std=c11" : " -x c++ -std=c++20");
      const Compilation result = Compile(command, refused.suffix, refused.source);
      EXPECT_NE(result.status, 0) << command << "\n" << refused.source;
      EXPECT_THAT(result.output, ::testing::ContainsRegex(refused.words)) << command << "\n"
                                                                          << refused.source;
    }
}

// The header itself must not cost: it pulls in no C++ library at all.
TEST(KernelHeader, IncludesNothingOfTheCppLibrary) {
  const Compilation result = Compile("g++ -std=c++20 -M", ".cpp", "#include <assay/kernel.h>\n");
  EXPECT_EQ(result.output.find("/c++/"), std::string::npos) << result.output;
}

// float16 by its definition: sign, 5 bits of exponent, 10 of mantissa.
double Decode(uint16_t bits, int mantissa_bits, int bias) {
  const int exponent_bits = 15 - mantissa_bits;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

template <typename T>
void ExpectConversions(int mantissa_bits, int bias) {
  const uint16_t infinity =
      static_cast<uint16_t>(((1 << (15 - mantissa_bits)) - 1) << mantissa_bits);
  for (uint32_t number = 0; number < 65536; ++number) {
    const uint16_t bits = static_cast<uint16_t>(number);
    T value;
    value.bits = bits;
    const double expected = Decode(bits, mantissa_bits, bias);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(value))) << number;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(static_cast<float>(value))))) << number;
      continue;
    }
    ASSERT_EQ(static_cast<double>(static_cast<float>(value)), expected) << number;
    ASSERT_EQ(T(static_cast<float>(value)).bits, bits) << number;
    // Between this value and the next one away from zero: below the middle, the middle (to even),
    // above it.
    if ((bits & 0x7FFF) == infinity) continue;
    const uint16_t next = static_cast<uint16_t>(bits + 1);
    const double step =
        (next & 0x7FFF) == infinity
            ? expected - Decode(static_cast<uint16_t>(bits - 1), mantissa_bits, bias)
            : Decode(next, mantissa_bits, bias) - expected;
    const float middle = static_cast<float>(expected + step / 2);
    if (static_cast<double>(middle) != expected + step / 2) continue;  // beyond float
    ASSERT_EQ(T(middle).bits, bits % 2 == 0 ? bits : next) << number;
    ASSERT_EQ(T(std::nextafter(middle, 0.0f)).bits, bits) << number;
    ASSERT_EQ(T(std::nextafter(middle, std::copysign(HUGE_VALF, middle))).bits, next) << number;
  }
}

TEST(KernelHeader, Float16RoundsToNearestEven) { ExpectConversions<assay::float16>(10, 15); }
TEST(KernelHeader, BFloat16RoundsToNearestEven) { ExpectConversions<assay::bfloat16>(7, 127); }

// A number of float8 by its definition; e4m3 has no infinities, and NaN at 127 alone.
double DecodeFloat8(uint8_t bits, int mantissa_bits, int bias) {
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  const int size = bits & 0x7F, exponent = size >> mantissa_bits;
  const int mantissa = size & ((1 << mantissa_bits) - 1);
  if (mantissa_bits == 3 ? size == 0x7F : size > 0x7C)
    return std::numeric_limits<double>::quiet_NaN();
  if (mantissa_bits == 2 && size == 0x7C) return sign * std::numeric_limits<double>::infinity();
  return exponent == 0
             ? sign * std::ldexp(mantissa, 1 - bias - mantissa_bits)
             : sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// `past`: the size behind the largest number, NaN or infinity.
template <typename T>
void ExpectFloat8(int mantissa_bits, int bias, uint8_t past) {
  for (int number = 0; number < 256; ++number) {
    T value;
    value.bits = static_cast<uint8_t>(number);
    const double expected = DecodeFloat8(value.bits, mantissa_bits, bias);
    const float given = static_cast<float>(value);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(given)) << number;
      EXPECT_EQ(T(given).bits & 0x7F, 0x7F) << number;
      continue;
    }
    EXPECT_EQ(static_cast<double>(given), expected) << number;
    EXPECT_EQ(T(given).bits, value.bits) << number;
    if ((number & 0x7F) >= past) continue;
    // Between this number and the next one away from zero: the middle goes to the even one.
    const auto next = static_cast<uint8_t>(number + 1);
    const double step =
        (next & 0x7F) == past
            ? expected - DecodeFloat8(static_cast<uint8_t>(number - 1), mantissa_bits, bias)
            : DecodeFloat8(next, mantissa_bits, bias) - expected;
    const auto middle = static_cast<float>(expected + step / 2);
    EXPECT_EQ(T(middle).bits, number % 2 == 0 ? value.bits : next) << number;
    EXPECT_EQ(T(std::nextafter(middle, 0.0f)).bits, value.bits) << number;
    EXPECT_EQ(T(std::nextafter(middle, std::copysign(HUGE_VALF, middle))).bits, next) << number;
  }
  EXPECT_EQ(T(HUGE_VALF).bits, past);
  EXPECT_EQ(T(1e30f).bits, past);
}

TEST(KernelHeader, Float8RoundsToNearestEven) {
  ExpectFloat8<assay::float8_e4m3>(3, 7, 0x7F);
  ExpectFloat8<assay::float8_e5m2>(2, 15, 0x7C);
}

#if defined(__x86_64__)
// The same bits whether a candidate is built for a processor with F16C or without, and under
// -ffast-math.
TEST(KernelHeader, EveryWayToConvertGivesTheSameBits) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no F16C here";
  const std::string source = R"(#include <assay/kernel.h>
#include <stdio.h>
int main() {
  uint64_t hash = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const float value = assay_float16_bits_to_float((uint16_t)i);
    if ((i & 0x7FFF) > 0x7C00) continue;
    uint32_t bits;
    __builtin_memcpy(&bits, &value, 4);
    hash = hash * 6364136223846793005u + bits;
  }
  for (uint64_t i = 0; i < 0x7F800000u; i += 509) {
    const uint32_t bits = (uint32_t)i;
    float value;
    __builtin_memcpy(&value, &bits, 4);
    hash = hash * 6364136223846793005u + assay_float_to_float16_bits(value);
    hash = hash * 6364136223846793005u + assay_float_to_float16_bits(-value);
  }
  printf("%llu\n", (unsigned long long)hash);
}
)";
  std::string first;
  for (const char* compiler :
       {"g++ -std=c++20 -O1", "g++ -std=c++20 -O2 -mf16c", "g++ -std=c++20 -O3 -march=native",
        "g++ -std=c++20 -O3 -ffast-math", "clang++ -std=c++20 -O2", "clang++ -std=c++20 -O2 -mf16c",
        "clang++ -std=c++20 -O3 -ffast-math", "gcc -std=c11 -x c -O2"}) {
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder);
    const std::string path = (folder->path() / "conversions").string();
    ASSERT_TRUE(WriteFileAtomically(path + ".cpp", source));
    const std::string command = fmt::format("{0} -I{1}/include {2}.cpp -o {2} && {2}", compiler,
                                            ASSAY_SOURCE_DIRECTORY, path);
    FILE* pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    char line[64] = "";
    ASSERT_NE(fgets(line, sizeof line, pipe), nullptr) << command;
    ASSERT_EQ(pclose(pipe), 0) << command;
    if (first.empty()) first = line;
    EXPECT_EQ(line, first) << command;
  }
}
#endif

}  // namespace
}  // namespace assay::native
