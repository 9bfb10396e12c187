#include "studies/explain_program.h"

#include <fmt/format.h>

#include "model/dtype.h"

namespace assay {

using wire::ArgumentSpec;
using wire::Role;

std::string FileName(const ArgumentSpec& argument) {
  return fmt::format("{}{}.bin", argument.role == Role::kOutput ? "expected_" : "", argument.name);
}

namespace {

// clang-format off
constexpr std::string_view kProgramHead = R"cpp(
// One call of a candidate, with its inputs and the outputs that were expected of it. Written by
// `assay explain`.
#include <assay/kernel.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define ASSAY_EXPLAIN_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASSAY_EXPLAIN_ASAN
#endif
#endif
#ifdef ASSAY_EXPLAIN_ASAN
extern "C" void __asan_poison_memory_region(void const volatile* begin, size_t size_bytes);
#endif

// Memory that is never freed is no finding here.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace {

struct Buffer {
  void* data;
  std::vector<int64_t> shape, strides;
  DLTensor tensor;
};

// Memory of just this size, as far as anybody may tell: guards lie before and after it. A sanitizer
// reports what touches them; without one CheckGuards finds what was written there.
constexpr size_t kGuardBytes = 1 << 16;
constexpr unsigned char kGuard = 0xA5;
struct Guarded {
  unsigned char* begin;
  size_t size_bytes;
  const char* name;
};
std::vector<Guarded> guarded;

void* Allocate(const char* name, size_t size_bytes) {
  const size_t all = kGuardBytes + (size_bytes + kGuardBytes + 63) / 64 * 64;
  auto* memory = static_cast<unsigned char*>(std::aligned_alloc(64, all));
  std::memset(memory, kGuard, all);
  guarded.push_back({memory, size_bytes, name});
#ifdef ASSAY_EXPLAIN_ASAN
  __asan_poison_memory_region(memory, kGuardBytes);
  __asan_poison_memory_region(memory + kGuardBytes + size_bytes, all - kGuardBytes - size_bytes);
#endif
  // Poison: what stays unwritten shows.
  std::memset(memory + kGuardBytes, 0xFF, size_bytes);
  return memory + kGuardBytes;
}

int CheckGuards() {
  int wrong = 0;
#ifndef ASSAY_EXPLAIN_ASAN
  for (const Guarded& each : guarded)
    for (size_t i = 0; i < kGuardBytes; ++i) {
      const bool before = each.begin[kGuardBytes - 1 - i] != kGuard;
      const bool after = each.begin[kGuardBytes + each.size_bytes + i] != kGuard;
      if (!before && !after) continue;
      std::printf("%s: it wrote out of bounds, %zu bytes %s\n", each.name, before ? i + 1 : i,
                  before ? "before its begin" : "past its end");
      wrong = 1;
      break;
    }
#endif
  return wrong;
}

void* Load(const char* name, size_t size_bytes) {
  void* data = Allocate(name, size_bytes);
  std::FILE* file = std::fopen(name, "rb");
  if (file == nullptr || std::fread(data, 1, size_bytes, file) != size_bytes) {
    std::fprintf(stderr, "cannot read %s\n", name);
    std::exit(2);
  }
  std::fclose(file);
  return data;
}

Buffer Make(void* data, std::vector<int64_t> shape, DLDataType type) {
  Buffer buffer{data, shape, std::vector<int64_t>(shape.size(), 1), {}};
  for (size_t axis = shape.size(); axis-- > 1;)
    buffer.strides[axis - 1] = buffer.strides[axis] * shape[axis];
  buffer.tensor.data = data;
  buffer.tensor.device = {kDLCPU, 0};
  buffer.tensor.ndim = static_cast<int32_t>(shape.size());
  buffer.tensor.dtype = type;
  return buffer;
}

// Shape pointers last: a Buffer that was moved has its vectors elsewhere.
DLTensor* Bind(Buffer& buffer) {
  buffer.tensor.shape = buffer.shape.data();
  buffer.tensor.strides = buffer.strides.data();
  return &buffer.tensor;
}

template <typename T>
int Compare(const char* name, const T* got, const T* expected,
            const std::vector<int64_t>& shape, double tolerance) {
  int64_t count = 1, wrong = 0, worst = -1;
  double worst_error = -1, scale = 0;
  for (int64_t size : shape) count *= size;
  for (int64_t i = 0; i < count; ++i)
    if (std::isfinite(double(expected[i])))
      scale = std::fmax(scale, std::fabs(double(expected[i])));
  for (int64_t i = 0; i < count; ++i) {
    const double g = double(got[i]), e = double(expected[i]);
    const bool same = g == e || (std::isnan(g) && std::isnan(e));
    const double error = same ? 0 : std::isfinite(g - e) ? std::fabs(g - e) : INFINITY;
    if (!(error <= tolerance * scale)) {
      if (wrong++ < 10)
        std::printf("%s[%lld]: got %.9g, expected %.9g\n", name, (long long)i, g, e);
    }
    if (error > worst_error) worst_error = error, worst = i;
  }
  std::printf(
      "%s: %lld of %lld elements differ by more than %g of the largest; worst at %lld, "
      "by %g\n",
      name, (long long)wrong, (long long)count, tolerance, (long long)worst, worst_error);
  return wrong != 0;
}

int CheckUnchanged(const char* name, const void* now, size_t size_bytes) {
  if (std::memcmp(now, Load(name, size_bytes), size_bytes) == 0) return 0;
  std::printf("%s: the call changed its input, which is read-only in a judgement\n", name);
  return 1;
}

}  // namespace

int main() {
)cpp";
// clang-format on

std::string ShapeText(const ArgumentSpec& argument) {
  std::string text;
  for (uint32_t i = 0; i < argument.rank; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", argument.shape[i]);
  return "{" + text + "}";
}

std::string TypeText(DType dtype) {
  const int code = dtype == DType::kBFloat16     ? 4
                   : dtype == DType::kFloat8E4M3 ? 10
                   : dtype == DType::kFloat8E5M2 ? 12
                   : IsFloatingPoint(dtype)      ? 2
                   : dtype == DType::kUInt8      ? 1
                   : dtype == DType::kBool       ? 6
                                                 : 0;
  return fmt::format("{{{}, {}, 1}}", code, 8 * wire::ElementBytes(dtype));
}

// The line that compares an output, which lies in buffer number `buffer`.
std::string Check(const ArgumentSpec& output, uint64_t buffer) {
  return fmt::format(
      "  wrong |= Compare(\"{0}\", static_cast<{1}*>(b{2}.data), "
      "static_cast<{1}*>(Load(\"{3}\", {4})), "
      "b{2}.shape, {5});\n",
      output.name, CppTypeName(output.dtype), buffer, FileName(output), output.size_bytes,
      IsFloatingPoint(output.dtype) ? 32 * UnitRoundoff(NativeClass(output.dtype)) : 0.0);
}

}  // namespace

std::string ProgramInCpp(const Oracle& oracle) {
  const wire::Plan& plan = oracle.plan();
  std::string text(kProgramHead.substr(1));
  std::string bind, checks;
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.kind != wire::Kind::kTensor) {
      const std::byte* value = oracle.inputs(0) + argument.offset;
      const bool real = argument.kind == wire::Kind::kFloat;
      bind += real ? fmt::format("  arguments[{}].real = {:.17g};\n", i,
                                 *reinterpret_cast<const double*>(value))
                   : fmt::format("  arguments[{}].integer = {};\n", i,
                                 *reinterpret_cast<const int64_t*>(value));
      continue;
    }
    if (wire::IsChangedInput(argument)) {
      checks += Check(argument, argument.twin - 1);
      continue;
    }
    const bool output = argument.role == Role::kOutput;
    const std::string data =
        output ? fmt::format("Allocate(\"{}\", {})", argument.name, argument.size_bytes)
               : fmt::format("Load(\"{}\", {})", FileName(argument), argument.size_bytes);
    text += fmt::format("  Buffer b{} = Make({}, {}, {});  // {}\n", i, data, ShapeText(argument),
                        TypeText(argument.dtype), DescribeArgument(argument));
    bind += fmt::format("  arguments[{0}].tensor = Bind(b{0});\n", i);
    if (!output && argument.twin == 0)
      checks += fmt::format("  wrong |= CheckUnchanged(\"{}\", b{}.data, {});\n",
                            FileName(argument), i, argument.size_bytes);
    if (output) checks += Check(argument, i);
  }
  text +=
      fmt::format("  std::vector<AssayArgument> arguments({});\n", wire::PassedCount(plan)) + bind;
  text += "  assay_kernel_v1.invoke(arguments.data());\n  int wrong = CheckGuards();\n" + checks +
          "  std::fflush(stdout);\n  return wrong;\n}\n";
  return text;
}

}  // namespace assay
