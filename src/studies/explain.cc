#include "studies/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/hash.h"
#include "builders/build_candidate.h"
#include "correctness/gate1_run.h"
#include "machine/machine.h"
#include "machine/seeds.h"
#include "model/dtype.h"
#include "toolchain/build.h"
#include "values/draw_kinds.h"
#include "values/oracle.h"

namespace assay {
namespace {

using wire::ArgumentSpec;
using wire::Role;

// The draw that failed; for a crash, which leaves no record, the first ordinary one.
struct FailingDraw {
  wire::DrawKind kind = wire::DrawKind::kOrdinary;
  uint64_t seed = 0;
  std::map<std::string, std::string> set;  // constants of another size, or none
};

Result<FailingDraw> FindFailingDraw(const Verdict& verdict) {
  if (verdict.correctness) {
    for (const DrawRecord& draw : verdict.correctness->draws) {
      if (draw.result != "failed") continue;
      const auto kind = DrawKindFromName(draw.kind);
      if (!kind)
        return UsageError(fmt::format("the verdict names an unknown kind of draw: {}", draw.kind));
      return FailingDraw{*kind, draw.seed, draw.set};
    }
  }
  switch (verdict.outcome) {
    case Outcome::kCrashed:
    case Outcome::kTimedOut:
    case Outcome::kOutOfMemory:
    case Outcome::kWrong:
      return FailingDraw{
          wire::DrawKind::kOrdinary, DeriveSeed(verdict.seed, SeedStream::kDraws), {}};
    default:
      return UsageError(fmt::format("verdict {} is '{}': there is no failing call to explain",
                                    verdict.id, OutcomeName(verdict.outcome)));
  }
}

std::string FileName(const ArgumentSpec& argument) {
  return fmt::format("{}{}.bin", argument.role == Role::kOutput ? "expected_" : "", argument.name);
}

// clang-format off
constexpr std::string_view kProgramHead = R"cpp(
// One call of a candidate, with its inputs and the outputs that were expected of it. Written by
// `assay explain`.
#include <assay/kernel.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

// Memory that is never freed is no finding here.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

namespace {

struct Buffer {
  void* data;
  std::vector<int64_t> shape, strides;
  DLTensor tensor;
};

void* Load(const char* name, size_t size_bytes) {
  void* data = std::aligned_alloc(64, (size_bytes + 63) / 64 * 64 + 64);
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
  const int code = dtype == DType::kBFloat16 ? 4
                   : IsFloatingPoint(dtype)  ? 2
                   : dtype == DType::kUInt8  ? 1
                   : dtype == DType::kBool   ? 6
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

std::string MainProgram(const wire::Plan& plan, const Oracle& oracle) {
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
        output
            ? fmt::format("std::aligned_alloc(64, {})", (argument.size_bytes + 63) / 64 * 64 + 64)
            : fmt::format("Load(\"{}\", {})", FileName(argument), argument.size_bytes);
    text += fmt::format("  Buffer b{} = Make({}, {}, {});  // {}\n", i, data, ShapeText(argument),
                        TypeText(argument.dtype), DescribeArgument(argument));
    bind += fmt::format("  arguments[{0}].tensor = Bind(b{0});\n", i);
    if (output) checks += Check(argument, i);
  }
  text +=
      fmt::format("  std::vector<AssayArgument> arguments({});\n", wire::PassedCount(plan)) + bind;
  text += "  assay_kernel_v1.invoke(arguments.data());\n  int wrong = 0;\n" + checks +
          "  std::fflush(stdout);\n  return wrong;\n}\n";
  return text;
}

Result<void> WriteTensors(const Oracle& oracle, const std::filesystem::path& folder) {
  const wire::Plan& plan = oracle.plan();
  for (uint32_t i = 0; i < plan.argument_count; ++i) {
    const ArgumentSpec& argument = plan.arguments[i];
    if (argument.kind != wire::Kind::kTensor) continue;
    const std::byte* base = argument.role == Role::kInput       ? oracle.inputs(0)
                            : argument.role == Role::kParameter ? oracle.weights()
                                                                : oracle.outputs(0);
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(
        folder / FileName(argument), {reinterpret_cast<const char*>(base + argument.offset),
                                      static_cast<size_t>(argument.size_bytes)}));
  }
  return {};
}

}  // namespace

Result<ExplainResult> ExplainVerdict(const ExplainRequest& request) {
  const Verdict& verdict = request.verdict;
  if (verdict.candidate.language == "cuda")
    return UsageError("assay explain writes programs for the processor: this candidate is CUDA");
  if (verdict.candidate.form != "native")
    return UsageError(
        fmt::format("assay explain writes C++ programs: the candidate of this verdict is in the {} "
                    "form",
                    verdict.candidate.form));
  ASSAY_ASSIGN_OR_RETURN(const FailingDraw draw, FindFailingDraw(verdict));
  if (Sha256Hex(request.problem.source) != verdict.problem.hash)
    return UsageError(
        fmt::format("{} changed since the verdict: judge again first", verdict.problem.path));
  if (Sha256Hex(request.candidate_source) != verdict.candidate.hash)
    return UsageError(
        fmt::format("{} changed since the verdict: judge again first", verdict.candidate.path));
  const std::filesystem::path folder(request.folder);
  if (std::filesystem::exists(folder))
    return UsageError(fmt::format("{} exists: name another folder with -o", folder.string()));
  ASSAY_RETURN_IF_ERROR(RequireSandbox());
  OracleOptions options;
  options.problem = request.problem;
  if (!draw.set.empty()) options.problem.set = draw.set;
  ASSAY_ASSIGN_OR_RETURN(options.python, FindPython(request.python));
  options.threads = std::max(1, verdict.machine.threads);
  options.weights_seed = DeriveSeed(verdict.seed, SeedStream::kWeights);
  options.memory_bytes = AvailableMemoryBytes() / 4 * 3;
  options.stop = request.stop;
  ASSAY_ASSIGN_OR_RETURN(Oracle oracle, Oracle::Open(std::move(options)));
  if (auto shown = oracle.ShowWeights(draw.seed); !shown)
    return std::unexpected(OracleError(shown.error()));
  if (auto filled = oracle.Fill(0, draw.seed, draw.kind, false); !filled)
    return UsageError(
        fmt::format("the failing inputs cannot be made again: {}", filled.error().message));
  const std::string source_name =
      verdict.candidate.language == "c" ? "candidate.c" : "candidate.cpp";
  ASSAY_ASSIGN_OR_RETURN(const std::string header, KernelHeader());
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / "assay" / "kernel.h", header));
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / source_name, request.candidate_source));
  ASSAY_RETURN_IF_ERROR(
      WriteFileAtomically(folder / "main.cpp", MainProgram(oracle.plan(), oracle)));
  ASSAY_RETURN_IF_ERROR(WriteTensors(oracle, folder));
  const bool is_c = verdict.candidate.language == "c";
  const std::string flags =
      "-g -O1 -fsanitize=address,undefined -march=native -I. " + verdict.candidate.flags;
  ExplainResult result;
  result.folder = folder.string();
  result.draw = DrawKindName(draw.kind);
  result.command =
      is_c ? fmt::format(
                 "cd {} && gcc -std=gnu11 {} -c candidate.c && g++ -std=c++20 {} main.cpp "
                 "candidate.o -o call && ./call",
                 folder.string(), flags, flags)
           : fmt::format("cd {} && g++ -std=c++20 {} main.cpp candidate.cpp -o call && ./call",
                         folder.string(), flags);
  return result;
}

}  // namespace assay
