// Tests the native host as a process, with candidates that are compiled here.
#include <assay/kernel.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstddef>
#include <cstring>
#include <numeric>

#include "judge_double.h"
#include "problem/suite.h"
#include "wire/channel.h"

namespace assay::native {
namespace {

using ::testing::HasSubstr;
using wire::ArgumentSpec;
using wire::DType;
using wire::Failure;
using wire::FrameKind;
using wire::Kind;
using wire::Region;
using wire::Role;

TEST(NativeHost, RunsTheNamedSlotsAndNoOther) {
  const CompiledCandidate candidate(kDoubleKernel);
  JudgeDouble judge(XToY(), 3);
  ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path()));
  judge.EnterBlocks();
  for (uint32_t round = 1; round <= 3; ++round) {
    for (uint32_t slot = 0; slot < 3; ++slot)
      for (int i = 0; i < 15; ++i) {
        judge.At<float>("x", slot)[i] =
            static_cast<float>(round * 100 + slot * 20 + static_cast<uint32_t>(i));
        judge.At<float>("y", slot)[i] = -1;
      }
    ASSERT_TRUE(judge.RunBlock({2, 0}));
    for (uint32_t slot = 0; slot < 3; ++slot)
      for (int i = 0; i < 15; ++i)
        ASSERT_EQ(judge.At<float>("y", slot)[i],
                  slot == 1 ? -1 : 2 * judge.At<float>("x", slot)[i]);
  }
  EXPECT_EQ(judge.LeaveBlocks().kind, FrameKind::kDone);
  wire::SendFrame(judge.socket(), {wire::kMagic, FrameKind::kQuit, {}});
  const int status = judge.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(judge.report().fault, wire::Fault::kNone);
}

TEST(NativeHost, LeavesTheBlocksAndEntersThemAgainWithMoreSlots) {
  const CompiledCandidate candidate(kDoubleKernel);
  JudgeDouble judge(XToY(), 4);
  judge.plan().slot_count = 1;
  ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path()));
  judge.At<float>("x", 3)[7] = 21;
  judge.EnterBlocks();
  ASSERT_TRUE(judge.RunBlock({0, 3, 0xFFFFFFFF}));  // slots that it does not have are left alone
  EXPECT_EQ(judge.At<float>("y", 3)[7], 0);
  ASSERT_EQ(judge.LeaveBlocks().kind, FrameKind::kDone);
  judge.plan().slot_count = 4;
  judge.EnterBlocks();
  ASSERT_TRUE(judge.RunBlock({3}));
  EXPECT_EQ(judge.At<float>("y", 3)[7], 42);
  EXPECT_EQ(judge.LeaveBlocks().kind, FrameKind::kDone);
}

TEST(NativeHost, PassesEveryDtypeInCpp) {
  const struct {
    DType dtype;
    const char* type;
  } cases[] = {{DType::kFloat64, "double"},
               {DType::kFloat32, "float"},
               {DType::kFloat16, "assay::float16"},
               {DType::kBFloat16, "assay::bfloat16"},
               {DType::kInt64, "int64_t"},
               {DType::kInt32, "int32_t"},
               {DType::kInt16, "int16_t"},
               {DType::kInt8, "int8_t"},
               {DType::kUInt8, "uint8_t"},
               {DType::kBool, "bool"},
               {DType::kFloat8E4M3, "assay::float8_e4m3"},
               {DType::kFloat8E5M2, "assay::float8_e5m2"}};
  // One kernel with an input and an output of each.
  std::vector<ArgumentSpec> arguments;
  std::string inputs, outputs, body;
  for (size_t i = 0; i < std::size(cases); ++i) {
    arguments.push_back(Tensor(fmt::format("in{}", i), Role::kInput, cases[i].dtype, {7}));
    inputs += fmt::format("assay::Tensor<const {}, 1> in{}, ", cases[i].type, i);
    outputs += fmt::format("{}assay::Tensor<{}, 1> out{}", i == 0 ? "" : ", ", cases[i].type, i);
    body += fmt::format("  for (int i = 0; i < 7; ++i) out{0}(6 - i) = in{0}(i);\n", i);
  }
  for (size_t i = 0; i < std::size(cases); ++i)
    arguments.push_back(Tensor(fmt::format("out{}", i), Role::kOutput, cases[i].dtype, {7}));
  const CompiledCandidate candidate(fmt::format(
      "#include <assay/kernel.h>\nASSAY_KERNEL({}{}) {{\n{}}}\n", inputs, outputs, body));
  JudgeDouble judge(arguments, 1);
  ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path()));
  for (size_t i = 0; i < std::size(cases); ++i)
    for (uint32_t byte = 0; byte < 7 * wire::ElementBytes(cases[i].dtype); ++byte)
      judge.At<uint8_t>(fmt::format("in{}", i))[byte] =
          static_cast<uint8_t>(cases[i].dtype == DType::kBool ? byte % 2 : byte + i);
  judge.EnterBlocks();
  ASSERT_TRUE(judge.RunBlock({0}));
  for (size_t i = 0; i < std::size(cases); ++i) {
    const uint32_t bytes = wire::ElementBytes(cases[i].dtype);
    for (size_t element = 0; element < 7; ++element)
      EXPECT_EQ(
          std::memcmp(judge.At<uint8_t>(fmt::format("in{}", i)) + element * bytes,
                      judge.At<uint8_t>(fmt::format("out{}", i)) + (6 - element) * bytes, bytes),
          0)
          << cases[i].type;
  }
}

// Scalars, parameters, ranks 0 and 8, several outputs, and tensors without elements, in both
// languages.
constexpr const char* kManyCpp = R"(#include <assay/kernel.h>
ASSAY_KERNEL(assay::Tensor<const int32_t, 8> a, int64_t n, double scale, bool negate,
             const assay::Tensor<const float, 0>& point, assay::Tensor<const float, 2> empty,
             assay::Tensor<const double, 2> weight, assay::Tensor<double, 0> sum,
             assay::Tensor<int64_t, 1> facts) {
  double total = 0;
  for (int64_t i = 0; i < a.size(7); ++i) total += a(0, 0, 0, 0, 0, 0, 1, i);
  total = total * scale + point() + weight(1, 2);
  sum() = negate ? -total : total;
  facts(0) = n;
  facts(1) = a.stride(6);
  facts(2) = a.count();
  facts(3) = empty.count();
  facts(4) = empty.size(1);
  facts(5) = point.count();
  facts(6) = weight.size(0) * 10 + weight.size(1);
}
)";
constexpr const char* kManyC = R"(#include <assay/kernel.h>
ASSAY_KERNEL_C(ASSAY_TENSOR(const int32_t, 8, a), ASSAY_SCALAR(int64_t, n),
               ASSAY_SCALAR(double, scale), ASSAY_SCALAR(bool, negate),
               ASSAY_TENSOR(const float, 0, point), ASSAY_TENSOR(const float, 2, empty),
               ASSAY_TENSOR(const double, 2, weight), ASSAY_TENSOR(double, 0, sum),
               ASSAY_TENSOR(int64_t, 1, facts)) {
  double total = 0;
  for (int64_t i = 0; i < a_size[7]; ++i) total += a[a_size[7] + i];
  total = total * scale + point[0] + weight[1 * weight_size[1] + 2];
  sum[0] = negate ? -total : total;
  (void)empty;
  facts[0] = n;
  facts[1] = a_size[7];
  facts[2] = assay_count(a_size, 8);
  facts[3] = assay_count(empty_size, 2);
  facts[4] = empty_size[1];
  facts[5] = assay_count(point_size, 0);
  facts[6] = weight_size[0] * 10 + weight_size[1];
}
)";

class EveryKind : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Languages, EveryKind, ::testing::Values("cpp", "c"));

TEST_P(EveryKind, OfArgumentArrives) {
  const std::string language = GetParam();
  const CompiledCandidate candidate(language == "c" ? kManyC : kManyCpp, language);
  JudgeDouble judge(
      {Tensor("a", Role::kInput, DType::kInt32, {1, 1, 1, 1, 1, 1, 2, 3}), Scalar("n", Kind::kInt),
       Scalar("scale", Kind::kFloat), Scalar("negate", Kind::kBool),
       Tensor("point", Role::kInput, DType::kFloat32, {}),
       Tensor("empty", Role::kInput, DType::kFloat32, {0, 4}),
       Tensor("weight", Role::kParameter, DType::kFloat64, {2, 3}),
       Tensor("sum", Role::kOutput, DType::kFloat64, {}),
       Tensor("facts", Role::kOutput, DType::kInt64, {7})},
      2);
  ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path()));
  for (uint32_t slot = 0; slot < 2; ++slot) judge.At<double>("weight", slot)[5] = 1000 + slot;
  judge.EnterBlocks();
  for (int64_t round = 0; round < 2; ++round) {  // scalars are fresh in every block, in every slot
    for (uint32_t slot = 0; slot < 2; ++slot) {
      std::iota(judge.At<int32_t>("a", slot), judge.At<int32_t>("a", slot) + 6,
                static_cast<int32_t>(slot));
      *judge.At<int64_t>("n", slot) = -5 + round;
      *judge.At<double>("scale", slot) = 0.5 + static_cast<double>(slot);
      *judge.At<int64_t>("negate", slot) = round;
      *judge.At<float>("point", slot) = 0.25f;
    }
    ASSERT_TRUE(judge.RunBlock({0, 1}));
    for (uint32_t slot = 0; slot < 2; ++slot) {
      const double total = (12.0 + 3 * slot) * (0.5 + slot) + 0.25 + 1000 + slot;
      EXPECT_EQ(*judge.At<double>("sum", slot), round == 1 ? -total : total);
      const int64_t* facts = judge.At<int64_t>("facts", slot);
      EXPECT_THAT(std::vector<int64_t>(facts, facts + 7),
                  ::testing::ElementsAre(-5 + round, 3, 6, 0, 4, 1, 23));
    }
  }
}

TEST(NativeHost, KeepsStateBetweenCalls) {
  const CompiledCandidate candidate(WithBody("static int calls; y(0, 0) = float(++calls);"));
  JudgeDouble judge(XToY(), 1);
  ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path()));
  judge.EnterBlocks();
  ASSERT_TRUE(judge.RunBlock({0, 0, 0}));
  ASSERT_TRUE(judge.RunBlock({0}));
  EXPECT_EQ(judge.At<float>("y")[0], 4);
}

TEST(NativeHost, RunsOpenMPThreads) {
  const CompiledCandidate candidate(WithBody("#pragma omp parallel for\n"
                                             "for (int64_t row = 0; row < 64; ++row) y(row, 0) = "
                                             "x(row, 0) + float(omp_get_num_threads());",
                                             "#include <omp.h>"),
                                    "cpp", "-fopenmp");
  JudgeDouble judge(XToY(64, 1), 1);
  ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path()));
  judge.At<float>("x")[63] = 10;
  judge.EnterBlocks();
  ASSERT_TRUE(judge.RunBlock({0}));
  EXPECT_EQ(judge.At<float>("y")[63], 12);  // the test gives it OMP_NUM_THREADS=2
}

// Loads a source against XToY and expects a refusal; returns the message.
std::string Refusal(const std::string& source, Failure failure, std::string_view language = "cpp",
                    std::vector<ArgumentSpec> arguments = XToY()) {
  const CompiledCandidate candidate(source, language);
  JudgeDouble judge(arguments, 1);
  judge.Start(candidate.path());
  judge.AttachAll();
  const wire::Frame answer = judge.Load();
  EXPECT_EQ(answer.kind, FrameKind::kFailed);
  EXPECT_EQ(static_cast<Failure>(answer.args[0]), failure);
  return judge.message();
}

TEST(NativeHost, ExplainsAWrongSignature) {
  constexpr const char* kRight =
      "ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y)";
  const auto message = [](const std::string& arguments) {
    return Refusal(fmt::format("#include <assay/kernel.h>\nASSAY_KERNEL({}) {{}}\n", arguments),
                   Failure::kCandidateSignature);
  };
  const std::string count = message("assay::Tensor<const float, 2>");
  EXPECT_THAT(count, HasSubstr("it takes 1 argument, the problem has 2"));
  EXPECT_THAT(count, HasSubstr("ASSAY_KERNEL(assay::Tensor<const float, 2>)"));
  EXPECT_THAT(count, HasSubstr(kRight));
  const std::string rank = message("assay::Tensor<const float, 2>, assay::Tensor<float, 1>");
  EXPECT_THAT(
      rank,
      HasSubstr(
          "argument 2 is output y: float, rank 2 [3, 5]; the candidate declares float, rank 1"));
  EXPECT_THAT(rank, HasSubstr(kRight));
  EXPECT_THAT(
      message("assay::Tensor<const assay::float16, 2>, assay::Tensor<float, 2>"),
      HasSubstr("const float, rank 2 [3, 5]; the candidate declares const assay::float16, rank 2"));
  EXPECT_THAT(
      message("assay::Tensor<float, 2>, assay::Tensor<float, 2>"),
      HasSubstr("input x: const float, rank 2 [3, 5]; the candidate declares float, rank 2"));
  EXPECT_THAT(message("assay::Tensor<const float, 2>, int64_t"),
              HasSubstr("the candidate declares int64_t (a scalar)"));
  EXPECT_THAT(message(""), HasSubstr("it takes 0 arguments, the problem has 2"));
  const std::string c =
      Refusal("#include <assay/kernel.h>\nASSAY_KERNEL_C(ASSAY_TENSOR(float, 2, y)) { (void)y; }\n",
              Failure::kCandidateSignature, "c");
  EXPECT_THAT(c, HasSubstr("ASSAY_KERNEL_C(ASSAY_TENSOR(float, 2, y))"));
  EXPECT_THAT(
      c, HasSubstr("ASSAY_KERNEL_C(ASSAY_TENSOR(const float, 2, x), ASSAY_TENSOR(float, 2, y))"));
}

TEST(NativeHost, ExplainsAMissingOrForgedEntry) {
  const std::string missing = Refusal("__attribute__((visibility(\"default\"))) int other = 1;\n",
                                      Failure::kCandidateEntry);
  EXPECT_THAT(missing, HasSubstr("no ASSAY_KERNEL"));
  EXPECT_THAT(
      missing,
      HasSubstr("ASSAY_KERNEL(assay::Tensor<const float, 2> x, assay::Tensor<float, 2> y)"));
  const std::string forged = Refusal(
      "#include <assay/kernel.h>\n"
      "const AssayKernel assay_kernel_v1 = {77, 1, 2, nullptr, \"\", nullptr};\n",
      Failure::kCandidateEntry);
  EXPECT_THAT(forged, HasSubstr("not what ASSAY_KERNEL defines"));
  const std::string hollow = Refusal(
      "#include <assay/kernel.h>\n"
      "static void Invoke(const AssayArgument*) {}\n"
      "const AssayKernel assay_kernel_v1 = {1, 1, 4000000000u, nullptr, nullptr, Invoke};\n",
      Failure::kCandidateEntry);
  EXPECT_THAT(hollow, HasSubstr("not what ASSAY_KERNEL defines"));
}

TEST(NativeHost, RefusesReservedTypesOfTheAbiByName) {
  const std::string message = Refusal(
      "#include <assay/kernel.h>\n"
      "static void Invoke(const AssayArgument*) {}\n"
      "static const AssayParameter parameters[] = {{1, ASSAY_INT4X2, 2, 0}, {1, "
      "ASSAY_FLOAT32, 2, 1}};\n"
      "const AssayKernel assay_kernel_v1 = {1, 1, 2, parameters, \"by hand\", Invoke};\n",
      Failure::kCandidateSignature);
  EXPECT_THAT(message, HasSubstr("int4x2 (reserved: this version of Assay cannot pass it)"));
}

TEST(NativeHost, ExplainsACandidateThatDoesNotLoad) {
  const std::string unresolved =
      Refusal(WithBody("y(0, 0) = missing_function();", "extern \"C\" float missing_function();"),
              Failure::kCandidateLoad);
  EXPECT_THAT(unresolved, HasSubstr("undefined symbol: missing_function"));
  EXPECT_THAT(unresolved, ::testing::Not(HasSubstr("kernel.so")));

  auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const std::string path = (folder->path() / "kernel.so").string();
  for (const char* content : {"", "this is no library"}) {
    ASSERT_TRUE(WriteFileAtomically(path, content));
    JudgeDouble judge(XToY(), 1);
    judge.Start(path);
    ASSERT_NO_FATAL_FAILURE(judge.AttachAll());
    const wire::Frame answer = judge.Load();
    ASSERT_EQ(answer.kind, FrameKind::kFailed);
    EXPECT_EQ(static_cast<Failure>(answer.args[0]), Failure::kCandidateLoad) << judge.message();
  }
}

// A candidate that leaves early ends the host with whatever status it likes: the judge sees the
// socket close.
TEST(NativeHost, ACandidateThatExitsEarlyIsSeenAsGone) {
  const CompiledCandidate candidate(WithBody("std::exit(0);", "#include <cstdlib>"));
  JudgeDouble judge(XToY(), 1);
  ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path()));
  judge.EnterBlocks();
  EXPECT_FALSE(judge.RunBlock({0}));
  EXPECT_TRUE(WIFEXITED(judge.Wait()));
}

#if defined(__x86_64__)
// Refuses getppid with EXDEV and allows everything else.
std::string RefuseGetppid() {
  const sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return {reinterpret_cast<const char*>(program), sizeof program};
}

TEST(NativeHost, IsLockedDownBeforeTheCandidatesConstructorsRun) {
  const CompiledCandidate candidate(WithBody(
      "y(0, 0) = float(at_start); y(0, 1) = float(Try()); y(0, 2) = float(InThread());",
      "#include <cerrno>\n#include <sys/syscall.h>\n#include <unistd.h>\n#include <pthread.h>\n"
      "static int Try() { errno = 0; return syscall(SYS_getppid) < 0 ? errno : 0; }\n"
      "static void* Body(void* result) { *(int*)result = Try(); return nullptr; }\n"
      "static int InThread() { pthread_t thread; int result = -1; pthread_create(&thread, nullptr, "
      "Body, &result);\n"
      "  pthread_join(thread, nullptr); return result; }\n"
      "static int at_start = Try();"));
  for (const bool locked : {false, true}) {
    JudgeDouble judge(XToY(), 1);
    ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path(), locked ? RefuseGetppid() : ""));
    judge.EnterBlocks();
    ASSERT_TRUE(judge.RunBlock({0}));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(judge.At<float>("y")[i], locked ? EXDEV : 0);
  }
}
#endif

TEST(NativeHost, EndsOnAProgramThatIsNoProgram) {
  for (const size_t size : {size_t{7}, size_t{4096 * 8 + 8}}) {
    JudgeDouble judge(XToY(), 1);
    ASSERT_NO_FATAL_FAILURE(judge.Start("/nowhere", std::string(size, '\0')));
    const int status = judge.Wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << size;
  }
}

TEST(NativeHost, EndsOnMalformedAndUnknownFrames) {
  for (const wire::Frame& frame :
       {wire::Frame{1, FrameKind::kQuit, {}}, wire::Frame{wire::kMagic, FrameKind::kDraw, {}},
        wire::Frame{wire::kMagic, FrameKind{0xFFFF}, {}}}) {
    JudgeDouble judge(XToY(), 1);
    judge.Start("/nowhere");
    ASSERT_NO_FATAL_FAILURE(judge.AttachAll());
    ASSERT_TRUE(wire::SendFrame(judge.socket(), frame));
    const int status = judge.Wait();
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2);
  }
}

TEST(NativeHost, EndsWhenTheJudgeIsGone) {
  JudgeDouble judge(XToY(), 1);
  judge.Start("/nowhere");
  ASSERT_NO_FATAL_FAILURE(judge.AttachAll());
  shutdown(judge.socket(), SHUT_RDWR);
  const int status = judge.Wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(NativeHost, RefusesRegionsThatMakeNoSense) {
  JudgeDouble judge(XToY(), 1);
  judge.Start("/nowhere");
  ASSERT_NO_FATAL_FAILURE(judge.AttachAll());
  const SharedMemory page(4096);
  const auto attach = [&](uint64_t region, uint64_t size_bytes, uint64_t writable, int fd) {
    const wire::Frame answer =
        judge.Request(FrameKind::kAttach, {region, size_bytes, writable}, fd);
    return answer.kind == FrameKind::kFailed &&
           static_cast<Failure>(answer.args[0]) == Failure::kEnvironment;
  };
  const int fd = page.fd.get();
  const auto inputs = static_cast<uint64_t>(Region::kInputs);
  EXPECT_TRUE(attach(0, 4096, 0, fd));
  EXPECT_TRUE(attach(wire::kRegionCount, 4096, 0, fd));
  EXPECT_TRUE(attach(inputs, 4096, 2, fd));
  EXPECT_TRUE(attach(inputs, 0, 0, fd));
  EXPECT_TRUE(attach(inputs, 8192, 0, fd)) << "longer than its file";
  EXPECT_TRUE(attach(inputs, UINT64_MAX, 0, fd));
  EXPECT_TRUE(attach(inputs, 4096, 0, -1)) << "without a descriptor";
  EXPECT_TRUE(attach(static_cast<uint64_t>(Region::kPlan), 4096, 0, fd)) << "too small for a Plan";
  EXPECT_FALSE(attach(inputs, 4096, 0, fd));
}

TEST(NativeHost, RefusesAnUnsoundPlanAtLoadAndAtBlocks) {
  const CompiledCandidate candidate(kDoubleKernel);
  JudgeDouble judge(XToY(), 1);
  judge.Start(candidate.path());
  ASSERT_NO_FATAL_FAILURE(judge.AttachAll());
  judge.plan().arguments[1].offset += 8;
  EXPECT_EQ(judge.Load().kind, FrameKind::kFailed);
  EXPECT_THAT(judge.message(), HasSubstr("argument 2 of the plan (y) is not aligned"));
  judge.plan().arguments[1].offset -= 8;
  EXPECT_EQ(judge.Request(FrameKind::kBlocks).kind, FrameKind::kFailed) << "before it is loaded";
  EXPECT_EQ(judge.Load().kind, FrameKind::kDone);
  EXPECT_EQ(judge.Load().kind, FrameKind::kFailed) << "a second time";
  judge.plan().slot_count = 1000;
  EXPECT_EQ(judge.Request(FrameKind::kBlocks).kind, FrameKind::kFailed);
  EXPECT_THAT(judge.message(), HasSubstr("does not fit its region"));
}

// What `assay new` writes must be what the host accepts, and must write nothing.
TEST(NativeHost, AcceptsTheStubs) {
  ProblemDescription description;
  for (uint32_t number = 1; number <= 12; ++number)
    description.arguments.push_back(
        Tensor(fmt::format("t{}", number), Role::kInput, static_cast<DType>(number), {2, 3}));
  for (const Kind kind : {Kind::kInt, Kind::kFloat, Kind::kBool})
    description.arguments.push_back(Scalar(fmt::format("s{}", static_cast<uint32_t>(kind)), kind));
  description.arguments.push_back(Tensor("weight", Role::kParameter, DType::kBFloat16, {3}));
  description.arguments.push_back(Tensor("out", Role::kOutput, DType::kFloat32, {2}));
  ProblemRequest request;
  request.name = "many";
  request.path = "many.py";
  for (const auto& [form, language] : {std::pair("native", "cpp"), std::pair("c", "c")}) {
    const auto stub = WriteStub(request, description, form);
    ASSERT_TRUE(stub) << stub.error().message;
    const CompiledCandidate candidate(*stub, language);
    JudgeDouble judge(description.arguments, 1);
    ASSERT_NO_FATAL_FAILURE(judge.StartLoaded(candidate.path()));
    judge.At<float>("out")[1] = -1;
    judge.EnterBlocks();
    ASSERT_TRUE(judge.RunBlock({0}));
    EXPECT_EQ(judge.At<float>("out")[1], -1);
  }
}

}  // namespace
}  // namespace assay::native
