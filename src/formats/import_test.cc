#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/imported.h"
#include "run/plan.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string Sample(const std::string& name) {
  return std::string(ASSAY_SOURCE_DIRECTORY) + "/tests/formats/" + name;
}

// In place of Python: what it says of the sample's task.yml.
Result<std::string> FakeReader(std::string_view kind, const std::string& content) {
  if (kind != "yaml" || content.find("Scale a matrix.") == std::string::npos)
    return EnvironmentError("the fake reads one file");
  return R"({"files": [{"name": "submission.py", "source": "@SUBMISSION@"},
      {"name": "task.py", "source": "task.py"}, {"name": "utils.py", "source": "../utils.py"},
      {"name": "reference.py", "source": "reference.py"}], "lang": "py",
      "benchmarks": [{"size": 16, "seed": 93246}, {"size": 32, "seed": 6256}]})";
}

Result<Imported> ImportSample(std::string_view kind, const std::string& name, size_t limit = 0) {
  return Import(kind, {{Sample(name)}, FakeReader, limit});
}

Json OriginOf(const Imported& imported, size_t index) {
  return Json::parse(imported.candidates.at(index).origin);
}

TEST(ImportTest, CudaL1RowsOfATaskAreSamplesOfOneProblem) {
  const auto imported = ImportSample("cuda-l1", "cuda-l1.jsonl");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->problems.size(), 1u);
  EXPECT_EQ(imported->problems[0].name, "level1_19");
  ASSERT_EQ(imported->candidates.size(), 2u);
  EXPECT_EQ(imported->candidates[1].name, "level1_19_2");
  EXPECT_EQ(OriginOf(*imported, 0)["claimed_speedup"], 1.25);
  EXPECT_THAT(imported->left_out, ElementsAre(HasSubstr("level1_20: there is no custom_code")));
}

TEST(ImportTest, CudaL1ReadsItsOlderLayoutAndItsTextScores) {
  const auto imported = ImportSample("cuda-l1", "cuda-l1-codes.json");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->candidates.size(), 1u);
  EXPECT_EQ(imported->problems[0].name, "level1_19");
  EXPECT_EQ(OriginOf(*imported, 0)["claimed_speedup"], 1.25);
}

TEST(ImportTest, LimitEndsAnImport) {
  const auto imported = ImportSample("cuda-l1", "cuda-l1.jsonl", 1);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->candidates.size(), 1u);
}

TEST(ImportTest, CudaL2GetsASizeABindingAndItsClaim) {
  const auto imported = ImportSample("cuda-l2", "cuda-l2");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->candidates.size(), 1u);
  EXPECT_THAT(imported->problems[0].text, HasSubstr("M = 64\nN = 64\nK = 128\n"));
  EXPECT_THAT(imported->candidates[0].text, HasSubstr("m.def(\\\"run\\\", &cuda_l2_h100_fp32)"));
  EXPECT_THAT(imported->candidates[0].text, HasSubstr("cuda_sources=SOURCE"));
  EXPECT_EQ(OriginOf(*imported, 0)["claimed_speedup"], 1.673);
}

// Kernels that were read by rows got a transposed matrix, and those without a launch of their own
// were given to the compiler of C++.
TEST(ImportTest, CudaL2GivesTheSecondMatrixByRowsToAKernelThatReadsItSo) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const std::string path = (folder->path() / "8_16_32.cu").string();
  const std::string source =
      "#include \"library.h\"\nvoid cuda_l2_x(torch::Tensor a, torch::Tensor b, "
      "torch::Tensor b_col_major, torch::Tensor c) { run(b.data_ptr()); }\n";
  ASSERT_TRUE(WriteFileAtomically(path, source));
  const auto imported = Import("cuda-l2", {{path}, FakeReader, 0});
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->problems[0].name, "hgemm_8_16_32_rows");
  EXPECT_THAT(imported->problems[0].text, HasSubstr("torch.randn(K, N, dtype=torch.half)"));
  EXPECT_THAT(imported->problems[0].text, HasSubstr("torch.matmul(a, b)"));
  EXPECT_THAT(imported->candidates[0].text, HasSubstr("extension.run(a, b, b, c)"));
  EXPECT_THAT(imported->candidates[0].text, HasSubstr("cuda_sources=SOURCE"));
}

TEST(ImportTest, CudaL2FindsTheClaimsOfTheCheckoutThatAFileLiesIn) {
  for (const char* const path :
       {"cuda-l2/kernels/h100_F32F16F16F32", "cuda-l2/kernels/h100_F32F16F16F32/64_64_128.cu"}) {
    const auto imported = ImportSample("cuda-l2", path);
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(OriginOf(*imported, 0)["claimed_speedup"], 1.673) << path;
  }
}

TEST(ImportTest, RobustKbenchMakesAProblemOfEachConfiguration) {
  const auto imported = ImportSample("robust-kbench", "robust-kbench");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->problems.size(), 2u);
  EXPECT_THAT(imported->problems[0].text, HasSubstr("INPUTS = {\"rows\": 16, \"columns\": 32}"));
  EXPECT_THAT(imported->problems[1].text, HasSubstr("INIT = {\"columns\": 32}"));
  EXPECT_EQ(imported->candidates.size(), 2u);
  EXPECT_THAT(imported->left_out, ElementsAre(HasSubstr("gradients")));
}

TEST(ImportTest, RobustKbenchTakesATaskAloneWithItsHighlightedKernel) {
  const auto imported = ImportSample("robust-kbench", "robust-kbench/tasks/relu_scaled");
  ASSERT_TRUE(imported) << imported.error().message;
  EXPECT_EQ(imported->candidates.size(), 2u);
}

TEST(ImportTest, KernelBenchHardMakesAProblemOfEachShapeAndKeepsLabels) {
  const auto imported =
      ImportSample("kernelbench-hard", "kernelbench-hard/benchmarks/hard/problems-h100");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->problems.size(), 2u);
  EXPECT_EQ(imported->problems[1].name, "01_scaled_relu_shape2");
  EXPECT_THAT(imported->problems[1].text, HasSubstr("globals().update(SHAPES[1])"));
  ASSERT_EQ(imported->candidates.size(), 4u);
  EXPECT_THAT(imported->candidates[0].text, HasSubstr("\nModelNew = Model\n"));
  EXPECT_EQ(OriginOf(*imported, 0)["label"], "reward_hack");
  EXPECT_EQ(OriginOf(*imported, 0)["card"], nullptr);
  EXPECT_EQ(OriginOf(*imported, 3)["label"], "clean");
  EXPECT_EQ(OriginOf(*imported, 3)["card"], "h100");
  EXPECT_EQ(OriginOf(*imported, 3)["shape"], 2);
}

TEST(ImportTest, KernelBenchHardTakesAFolderOfProblems) {
  const auto imported = ImportSample("kernelbench-hard", "kernelbench-hard/benchmarks/hard");
  ASSERT_FALSE(imported);
  EXPECT_THAT(imported.error().message, HasSubstr("problems-h100"));
}

TEST(ImportTest, KernelBookNamesTheClassToJudge) {
  const auto imported = ImportSample("kernelbook", "kernelbook.json");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->candidates.size(), 1u);
  EXPECT_THAT(imported->problems[0].text, HasSubstr("\nModel = Halved\n"));
  EXPECT_THAT(imported->candidates[0].text, HasSubstr("\nModelNew = HalvedNew\n"));
  EXPECT_THAT(imported->left_out, ElementsAre(HasSubstr("MissingNew")));
}

TEST(ImportTest, AiCudaEngineerPutsTheExtensionInTheFunctionsPlace) {
  const auto imported = ImportSample("ai-cuda-engineer", "ai-cuda-engineer.csv");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->candidates.size(), 1u);
  EXPECT_EQ(imported->candidates[0].name, "level1_19_ReLU_scaled_clamp_scaled");
  EXPECT_THAT(imported->candidates[0].text, HasSubstr("fn=extension.forward"));
  EXPECT_THAT(imported->candidates[0].text, HasSubstr("cpp_sources=SOURCE"));
  EXPECT_EQ(OriginOf(*imported, 0)["claimed_speedup"], 2.0);
  EXPECT_EQ(imported->left_out.size(), 1u);
}

TEST(ImportTest, PopcornDrawsSeedsAnewForEachBenchmark) {
  const auto imported = ImportSample("popcorn", "popcorn/scale_py");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->problems.size(), 2u);
  EXPECT_THAT(imported->problems[0].text, HasSubstr("CASE = {\"size\": 16}"));
  EXPECT_THAT(imported->problems[0].text, HasSubstr("seed=random.randrange(1, 2**31)"));
  ASSERT_EQ(imported->candidates.size(), 4u);
  EXPECT_THAT(imported->candidates[0].text, Not(HasSubstr("def ref_kernel")));
  const Json origin = OriginOf(*imported, 1);
  EXPECT_EQ(origin["spec"], "size: 32; seed: 6256");
  EXPECT_EQ(origin["directives"]["gpu"], "A100");
}

TEST(ImportTest, PopcornsCheckerBecomesACheckUnlessItComparesWithTheReference) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const auto imported = [&](const std::string& checker) {
    const std::string reference =
        "def generate_input(seed): ...\ndef ref_kernel(data): ...\n" + checker;
    EXPECT_TRUE(WriteFileAtomically(folder->path() / "reference.py", reference));
    EXPECT_TRUE(WriteFileAtomically(folder->path() / "task.yml", "by the reader"));
    EXPECT_TRUE(WriteFileAtomically(folder->path() / "submission.py", "custom_kernel = 0\n"));
    ImportRequest request{{folder->path().string()}, {}, 0};
    request.read = [](std::string_view, const std::string&) -> Result<std::string> {
      return std::string(R"({"lang": "py", "tests": [{"seed": 1}], "files": [
          {"name": "reference.py", "source": "reference.py"}]})");
    };
    return Import("popcorn", request).value();
  };
  const Imported accepts = imported(
      "def check_implementation(data,\n                         output\n):\n    return True, "
      "''\n\n\n"
      "def other(): return ref_kernel\n");
  EXPECT_THAT(accepts.notes, IsEmpty());
  EXPECT_THAT(accepts.problems[0].text, HasSubstr("def check(inputs, outputs):"));
  EXPECT_THAT(accepts.problems[0].text, HasSubstr("import check_implementation, generate_input"));
  const Imported compares = imported(
      "def check_implementation(data, output):\n    return near(output, ref_kernel(data))\n");
  EXPECT_THAT(compares.notes, ElementsAre(HasSubstr("check_implementation is not taken over")));
  EXPECT_THAT(compares.problems[0].text, Not(HasSubstr("def check(")));
  const Imported made = imported("check_implementation = make_match_reference(ref_kernel)\n");
  EXPECT_THAT(made.notes, IsEmpty());
  EXPECT_THAT(made.problems[0].text, Not(HasSubstr("def check(")));
}

TEST(ImportTest, FlashInferSaysWhatItCannotMake) {
  const auto imported = ImportSample("flashinfer", "flashinfer");
  ASSERT_TRUE(imported) << imported.error().message;
  ASSERT_EQ(imported->problems.size(), 1u);
  EXPECT_THAT(imported->problems[0].text, HasSubstr("AXES[\"twice\"] = AXES[\"columns\"] * 2"));
  EXPECT_THAT(imported->problems[0].text, HasSubstr("torch.int64, [4])"));
  ASSERT_EQ(imported->candidates.size(), 2u);
  EXPECT_THAT(imported->left_out,
              ElementsAre(HasSubstr("binding is tvm-ffi"), HasSubstr("index is random int64")));
}

TEST(ImportTest, RefusalsNameThePathOrTheFormats) {
  EXPECT_THAT(ImportSample("cuda-l1", "missing").error().message, HasSubstr("there is no "));
  EXPECT_THAT(ImportSample("kernelbok", "kernelbook.json").error().message,
              HasSubstr("kernelbook"));
  EXPECT_THAT(ImportSample("robust-kbench", "popcorn").error().message, HasSubstr("func_forward"));
}

TEST(ImportTest, AWrittenImportIsAPlanWithoutTrouble) {
  const auto folder = TemporaryFolder::Create();
  ASSERT_TRUE(folder);
  const std::string out = (folder->path() / "out").string();
  const auto imported = ImportSample("cuda-l1", "cuda-l1.jsonl");
  ASSERT_TRUE(WriteImported(*imported, out, false));
  PlanRequest request;
  request.paths = {out + "/" + kManifestName};
  request.problems = out + "/problems";
  const auto plan = MakeRunPlan(request);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->troubles, ElementsAre());
  ASSERT_EQ(plan->items.size(), 2u);
  EXPECT_EQ(plan->items[1].sample, 1);
  EXPECT_THAT(WriteImported(*imported, out, false).error().message, HasSubstr("not empty"));
  EXPECT_TRUE(WriteImported(*imported, out, true));
}

}  // namespace
}  // namespace assay
