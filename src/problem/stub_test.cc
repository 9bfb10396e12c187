#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/files.h"
#include "problem/arguments_testing.h"
#include "problem/gradients.h"
#include "problem/suite.h"

namespace assay {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using wire::ArgumentSpec;
using wire::DType;
using wire::Kind;
using wire::Role;

ArgumentSpec Scalar(std::string_view name, Kind kind) {
  ArgumentSpec spec{};
  name.copy(spec.name, wire::kNameBytes - 1);
  spec.role = Role::kInput;
  spec.kind = kind;
  spec.size_bytes = 8;
  return spec;
}

ProblemRequest Softmax() {
  ProblemRequest request;
  request.name = "softmax";
  request.path = "my problems/softmax.py";
  request.set = {{"COLUMNS", "16"}, {"ROWS", "4"}};
  return request;
}

// Every dtype and kind, names that are words of C or C++, and names that collide.
ProblemDescription Everything() {
  ProblemDescription description;
  description.arguments.push_back(Tensor("x", Role::kInput, DType::kFloat32, {4, 16}));
  for (uint32_t number = 1; number <= 12; ++number)
    description.arguments.push_back(
        Tensor(fmt::format("t{}", number), Role::kInput, static_cast<DType>(number), {2}));
  for (const char* name : {"new", "restrict", "int64_t", "x_size", "bool"})
    description.arguments.push_back(Tensor(name, Role::kInput, DType::kFloat32, {1}));
  description.arguments.push_back(Scalar("axis", Kind::kInt));
  description.arguments.push_back(Scalar("epsilon", Kind::kFloat));
  description.arguments.push_back(Scalar("causal", Kind::kBool));
  description.arguments.push_back(Tensor("norm_weight", Role::kParameter, DType::kBFloat16, {16}));
  description.arguments.push_back(Tensor("out", Role::kOutput, DType::kFloat32, {}));
  description.arguments.push_back(
      Tensor("out1", Role::kOutput, DType::kInt64, {1, 2, 3, 4, 5, 6, 7, 8}));
  return description;
}

// The exit status of a command, as pclose gives it.
int StatusOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  return pipe == nullptr ? -1 : pclose(pipe);
}

void ExpectCompiles(const std::string& stub, const std::string& suffix,
                    const std::string& compiler) {
  auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const std::string source = (folder->path() / ("stub" + suffix)).string();
  ASSERT_TRUE(WriteFileAtomically(source, stub));
  const std::string command = fmt::format("{} -Wall -Wextra -Werror -fsyntax-only -I{}/include {}",
                                          compiler, ASSAY_SOURCE_DIRECTORY, source);
  EXPECT_EQ(StatusOf(command), 0) << command << "\n" << stub;
}

// The model's prompt told how a tensor is read and what compiles it; who writes by hand was not
// told.
TEST(Stub, ItSaysHowATensorIsReadAndWhatCompilesIt) {
  const auto cpp = WriteStub(Softmax(), Everything(), "native");
  ASSERT_TRUE(cpp);
  for (const char* text : {"x.data()", "x.stride(axis)", "-O3 -march=native", "`//! flags "})
    EXPECT_THAT(*cpp, HasSubstr(text));
}

TEST(Stub, AChangedInputIsWrittenWhereItComes) {
  ProblemDescription description;
  description.arguments = {Tensor("cache", Role::kInput, DType::kFloat32, {4, 16}),
                           Tensor("k", Role::kInput, DType::kFloat32, {16}),
                           Tensor("out", Role::kOutput, DType::kFloat32, {4}),
                           Tensor("cache_after", Role::kOutput, DType::kFloat32, {4, 16})};
  description.arguments[0].twin = 4;
  description.arguments[3].twin = 1;
  description.layouts = "input k is [16] with strides [2]: both sides get it contiguous";
  const auto cpp = WriteStub(Softmax(), description, "native");
  ASSERT_TRUE(cpp) << cpp.error().message;
  EXPECT_THAT(*cpp, HasSubstr("assay::Tensor<float, 2> cache,"));
  EXPECT_THAT(*cpp, HasSubstr("assay::Tensor<const float, 1> k,"));
  EXPECT_THAT(*cpp, HasSubstr("[4, 16]  (changed in place)"));
  EXPECT_THAT(*cpp, HasSubstr("Each call has its own."));
  EXPECT_THAT(*cpp, HasSubstr("// input k is [16] with strides [2]"));
  EXPECT_THAT(*cpp, Not(HasSubstr("cache_after")));
  ExpectCompiles(*cpp, ".cpp", "g++ -std=c++20");
  const auto device = WriteStub(Softmax(), description, "device");
  ASSERT_TRUE(device);
  EXPECT_THAT(*device, HasSubstr("float* cache, const float* k, float* out"));
  EXPECT_THAT(*device, HasSubstr("args=(cache, k, out)"));
}

TEST(Stub, CompilesWithoutWarningsForEveryTypeAndAwkwardName) {
  const auto cpp = WriteStub(Softmax(), Everything(), "native");
  ASSERT_TRUE(cpp) << cpp.error().message;
  for (const char* compiler : {"g++ -std=c++17", "g++ -std=c++20", "clang++ -std=c++20"})
    ExpectCompiles(*cpp, ".cpp", compiler);
  const auto c = WriteStub(Softmax(), Everything(), "c");
  ASSERT_TRUE(c) << c.error().message;
  for (const char* compiler : {"gcc -std=c11", "clang -std=c11"})
    ExpectCompiles(*c, ".c", compiler);
}

TEST(Stub, CudaStubsCompile) {
  const std::string nvcc = "/usr/local/cuda/bin/nvcc";
  if (::access(nvcc.c_str(), X_OK) != 0) GTEST_SKIP() << "no nvcc in /usr/local/cuda";
  for (const char* form : {"cuda", "device"}) {
    const auto stub = WriteStub(Softmax(), Everything(), form);
    ASSERT_TRUE(stub) << stub.error().message;
    auto folder = TemporaryFolder::Create();
    ASSERT_TRUE(folder);
    const std::string source = (folder->path() / "stub.cu").string();
    ASSERT_TRUE(WriteFileAtomically(source, *stub));
    const std::string command =
        fmt::format("{} -std=c++20 -Werror all-warnings -arch=sm_90a -I{}/include -c -o {}.o {}",
                    nvcc, ASSAY_SOURCE_DIRECTORY, source, source);
    EXPECT_EQ(StatusOf(command), 0) << command << "\n" << *stub;
  }
}

TEST(Stub, TheDeviceFormHasALaunchLineInTheProblemsNames) {
  ProblemDescription description;
  description.arguments = {Tensor("x", Role::kInput, DType::kFloat32, {4, 16}),
                           Tensor("new", Role::kInput, DType::kInt64, {4}),
                           Scalar("scale", Kind::kFloat),
                           Tensor("out", Role::kOutput, DType::kFloat16, {4, 16})};
  const auto stub = WriteStub(Softmax(), description, "device");
  ASSERT_TRUE(stub);
  EXPECT_THAT(*stub, HasSubstr("a CUDA device candidate"));
  EXPECT_THAT(*stub, HasSubstr("\n//! launch softmax_kernel grid=(1) block=(256) "
                               "args=(x, new, scale, out)\n"));
  EXPECT_THAT(*stub,
              HasSubstr("softmax_kernel(const float* x, const long long* new_, double scale, "
                        "__half* out) {"));
  EXPECT_THAT(*stub, HasSubstr("#include <cuda_fp16.h>"));
  EXPECT_THAT(*stub, HasSubstr("softmax.py' softmax.cu --set"));
  const auto native = WriteStub(Softmax(), description, "cuda");
  ASSERT_TRUE(native);
  EXPECT_THAT(*native, HasSubstr("assay::Tensor<__half, 2> out,"));
  EXPECT_THAT(*native, HasSubstr("cudaStream_t stream) {"));
  EXPECT_THAT(*native, Not(HasSubstr("//! launch")));
}

TEST(Stub, Float8HasCudasTypesInCudaAndBytesInTheDeviceForm) {
  ProblemDescription description;
  description.arguments = {Tensor("a", Role::kInput, DType::kFloat8E4M3, {4, 16}),
                           Tensor("out", Role::kOutput, DType::kFloat8E5M2, {4, 16})};
  const auto native = WriteStub(Softmax(), description, "cuda");
  ASSERT_TRUE(native);
  EXPECT_THAT(*native, HasSubstr("#include <cuda_fp8.h>"));
  EXPECT_THAT(*native, HasSubstr("assay::Tensor<const __nv_fp8_e4m3, 2> a,"));
  const auto device = WriteStub(Softmax(), description, "device");
  ASSERT_TRUE(device);
  EXPECT_THAT(*device, HasSubstr("const unsigned char* a, unsigned char* out"));
  EXPECT_THAT(*device, Not(HasSubstr("cuda_fp8")));
}

TEST(Stub, ALaunchLineTakesNoMoreThanItsArguments) {
  ProblemDescription description;
  for (int i = 0; i < 65; ++i)
    description.arguments.push_back(
        Tensor(fmt::format("t{}", i), Role::kInput, DType::kFloat32, {2}));
  const auto stub = WriteStub(Softmax(), description, "device");
  ASSERT_FALSE(stub);
  EXPECT_THAT(stub.error().message, HasSubstr("at most 64: use --form cuda"));
  EXPECT_TRUE(WriteStub(Softmax(), description, "cuda"));
}

// A copy whose class alone was renamed ended in "name 'Model' is not defined" for most of
// KernelBench's files.
TEST(Stub, ThePythonStubIsTheReferenceUnderTheCandidatesName) {
  ProblemRequest request = Softmax();
  request.source =
      "import torch.nn as nn\n"
      "class Model(nn.Module):\n"
      "    def __init__(self):\n"
      "        super(Model, self).__init__()  # MyModel, Model2, nn.Model, Model\n";
  const auto stub = WriteStub(request, Everything(), "python");
  ASSERT_TRUE(stub) << stub.error().message;
  EXPECT_THAT(*stub, HasSubstr("a Python candidate that computes what the reference does."));
  EXPECT_THAT(*stub, HasSubstr("norm_weight"));
  EXPECT_THAT(*stub, EndsWith("import torch.nn as nn\n"
                              "class ModelNew(nn.Module):\n"
                              "    def __init__(self):\n"
                              "        super(ModelNew, self).__init__()  # MyModel, Model2, "
                              "nn.Model, ModelNew\n"));
}

TEST(Stub, OfAProblemWithGradientsIsJudgedWithThem) {
  ProblemRequest request = Softmax();
  request.source = "class Model(nn.Module): pass\n";
  AddGradients(&request);
  const auto python = WriteStub(request, Everything(), "python");
  ASSERT_TRUE(python) << python.error().message;
  EXPECT_THAT(*python, EndsWith("class ModelNew(nn.Module): pass\n"));  // no lines of --grad
  EXPECT_THAT(*python, HasSubstr("autograd for the gradients"));
  for (const char* form : {"native", "python", "device"})
    EXPECT_THAT(*WriteStub(request, Everything(), form), HasSubstr(" --grad"));
}

TEST(Stub, SaysWhetherWeightsMayBePreparedOnce) {
  ProblemRequest request = Softmax();
  for (const char* form : {"native", "c", "python", "cuda", "device"}) {
    request.weights = WeightsKind::kVaried;
    EXPECT_THAT(*WriteStub(request, Everything(), form),
                HasSubstr("wrong, unless --weights constant allows it."));
    request.weights = WeightsKind::kConstant;
    EXPECT_THAT(*WriteStub(request, Everything(), form), HasSubstr("they may be prepared once."));
  }
  ProblemDescription without;
  without.arguments = {Tensor("out", Role::kOutput, DType::kFloat16, {4, 16})};
  EXPECT_THAT(*WriteStub(request, without, "native"), Not(HasSubstr("prepared once")));
}

TEST(Stub, NamesEveryArgumentWithShapeAndDtypeAndTheCommandThatJudgesIt) {
  ProblemDescription description;
  description.arguments = {Tensor("x", Role::kInput, DType::kFloat32, {4, 16}),
                           Tensor("out", Role::kOutput, DType::kFloat16, {4, 16})};
  const auto stub = WriteStub(Softmax(), description, "native");
  ASSERT_TRUE(stub);
  EXPECT_THAT(*stub, HasSubstr("//   input      x    float32  [4, 16]"));
  EXPECT_THAT(*stub, HasSubstr("//   output     out  float16  [4, 16]"));
  EXPECT_THAT(*stub, HasSubstr("ASSAY_KERNEL(assay::Tensor<const float, 2> x,"));
  EXPECT_THAT(*stub, HasSubstr("assay::Tensor<assay::float16, 2> out) {"));
  EXPECT_THAT(
      *stub,
      HasSubstr("assay judge 'my problems/softmax.py' softmax.cpp --set COLUMNS=16 --set ROWS=4"));
  EXPECT_THAT(*stub, HasSubstr("COLUMNS = 16, ROWS = 4"));
  EXPECT_THAT(*WriteStub(Softmax(), description, "native", "my kernels/mine.cpp"),
              HasSubstr("softmax.py' 'my kernels/mine.cpp' --set COLUMNS=16"));
}

TEST(Stub, ANamedSizeStandsForItsConstants) {
  ProblemRequest request = Softmax();
  request.size = "small";
  const auto stub = WriteStub(request, Everything(), "python");
  ASSERT_TRUE(stub);
  EXPECT_THAT(*stub, HasSubstr("# softmax, size small: a Python candidate"));
  EXPECT_THAT(*stub, HasSubstr("softmax.py' softmax.py --size small\n"));
  EXPECT_THAT(*stub, Not(HasSubstr("--set")));
}

// A line break or a last backslash in a name must not turn a comment into code.
TEST(Stub, TextOfOthersStaysInsideItsComment) {
  ProblemRequest request = Softmax();
  request.path = "p.py\nint injected;";
  request.set = {{"A", "'x\\'\\"}};
  const auto stub = WriteStub(request, Everything(), "native");
  ASSERT_TRUE(stub);
  EXPECT_THAT(*stub, Not(HasSubstr("\nint injected")));
  ExpectCompiles(*stub, ".cpp", "g++ -std=c++20");
}

TEST(Stub, RefusesWhatCannotBeWritten) {
  EXPECT_FALSE(WriteStub(Softmax(), Everything(), "fortran"));
  EXPECT_FALSE(WriteStub(Softmax(), {}, "native"));
  ProblemDescription odd;
  odd.arguments = {Tensor("x", Role::kInput, static_cast<DType>(99), {1})};
  EXPECT_FALSE(WriteStub(Softmax(), odd, "native"));
  ProblemDescription many;
  for (int i = 0; i < 300; ++i)
    many.arguments.push_back(Tensor(fmt::format("w{}", i), Role::kParameter, DType::kFloat32, {1}));
  many.arguments.push_back(Tensor("out", Role::kOutput, DType::kFloat32, {1}));
  const auto c = WriteStub(Softmax(), many, "c");
  ASSERT_FALSE(c);
  EXPECT_THAT(c.error().message, HasSubstr("--form native"));
  const auto cpp = WriteStub(Softmax(), many, "native");
  ASSERT_TRUE(cpp);
  ExpectCompiles(*cpp, ".cpp", "g++ -std=c++20");
}

TEST(Stub, TheLargestCStubCompiles) {
  ProblemDescription many;
  for (int i = 0; i < 63; ++i)
    many.arguments.push_back(Tensor(fmt::format("w{}", i), Role::kParameter, DType::kFloat32, {1}));
  many.arguments.push_back(Tensor("out", Role::kOutput, DType::kFloat32, {1}));
  const auto c = WriteStub(Softmax(), many, "c");
  ASSERT_TRUE(c);
  for (const char* compiler : {"gcc -std=c11", "clang -std=c11"})
    ExpectCompiles(*c, ".c", compiler);
}

}  // namespace
}  // namespace assay
