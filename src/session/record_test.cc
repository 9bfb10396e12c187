#include "session/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/gpu.h"

namespace assay {
namespace {

// 4 TB/s; a core of the processor has 10 GB/s.
MachineProfile MachineWith(const GpuFacts& facts) {
  MachineProfile machine;
  machine.ceilings = {{1, 10e9, 10e9, 10e9, {{"avx2", 50e9}}, {}}};
  GpuCeilings gpu;
  gpu.uuid = facts.uuid;
  gpu.driver_version = facts.driver_version;
  gpu.traffic = {{"read", {4e12, 4e12, ""}}, {"copy", {4e12, 4e12, ""}}};
  gpu.arithmetic = {{"float32", {50e12, 50e12, "fma"}}};
  machine.gpus = {gpu};
  return machine;
}

// 400 MB in 200 us.
Verdict Judged() {
  Verdict verdict;
  verdict.problem.dtype = "float32";
  verdict.machine.threads = 1;
  verdict.correctness.emplace().required_class = "float32";
  verdict.work = Work{1e6, "counted", 400e6, 200e6, "signature", 0, 0};
  Speed& speed = verdict.speed.emplace();
  speed.headline = "eager";
  speed.baselines["eager"].candidate_time_ns = 200e3;
  speed.baselines["eager"].time_ns = 400e3;
  return verdict;
}

TEST(RooflineOf, TakesTheCeilingsOfWhatItWasJudgedOn) {
  const auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
  ASSERT_TRUE(gpu) << gpu.error().message;
  const MachineProfile machine = MachineWith(gpu->facts());
  const auto there = RooflineOf(Judged(), machine, {}, {}, &*gpu);
  ASSERT_TRUE(there);
  EXPECT_DOUBLE_EQ(there->percent_of_peak, 50);
  EXPECT_DOUBLE_EQ(there->reference_percent_of_peak, 25);
  const auto here = RooflineOf(Judged(), machine, {}, {}, nullptr);
  ASSERT_TRUE(here);
  EXPECT_DOUBLE_EQ(here->bandwidth_bytes_s, 10e9);
}

TEST(RooflineOf, TakesThePeakOfWhatIsMultiplied) {
  const auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
  ASSERT_TRUE(gpu) << gpu.error().message;
  MachineProfile machine = MachineWith(gpu->facts());
  machine.gpus[0].arithmetic["tensor_bfloat16"] = {500e12, 500e12, "wgmma"};
  machine.gpus[0].arithmetic["tensor_float8"] = {1000e12, 1000e12, "wgmma"};
  Verdict verdict = Judged();
  verdict.problem.dtype = "bfloat16";
  verdict.correctness->required_class = "bfloat16";
  verdict.work->operations = 150e9;
  const auto own = RooflineOf(verdict, machine, {}, {}, &*gpu);
  ASSERT_TRUE(own);
  EXPECT_DOUBLE_EQ(own->rate_operations_s, 500e12);
  const auto said = RooflineOf(verdict, machine, {}, "float8_e4m3fn", &*gpu);
  ASSERT_TRUE(said);
  EXPECT_DOUBLE_EQ(said->rate_operations_s, 1000e12);
}

TEST(RooflineOf, RefusesTheCeilingsOfAnotherGpuOrDriver) {
  const auto gpu = Gpu::Open(ASSAY_BUILD_DIRECTORY "/tests/fake_cuda/libcuda.so.1");
  ASSERT_TRUE(gpu) << gpu.error().message;
  GpuFacts other = gpu->facts();
  other.uuid = "GPU-another";
  EXPECT_FALSE(RooflineOf(Judged(), MachineWith(other), {}, {}, &*gpu));
  other = gpu->facts();
  other.driver_version += 10;
  EXPECT_FALSE(RooflineOf(Judged(), MachineWith(other), {}, {}, &*gpu));
  MachineProfile none = MachineWith(gpu->facts());
  none.gpus.clear();
  EXPECT_FALSE(RooflineOf(Judged(), none, {}, {}, &*gpu));
}

TEST(NoteOfLeftOut, NamesTheKindsOfDrawsThatPassedWithoutThem) {
  const DrawRecord whole{"ordinary", 1, "passed", "", 0};
  const DrawRecord dropped{"ties", 1, "dropped", "it would change none of these inputs", 0};
  const DrawRecord failed{"outlier", 1, "failed", "all NaN", 9};
  const DrawRecord without{"huge-scale", 1, "passed", "20 of 640 elements are left out", 0};
  EXPECT_EQ(NoteOfLeftOut({whole, dropped, failed}), "");
  EXPECT_THAT(NoteOfLeftOut({whole, without, dropped, without}),
              testing::EndsWith("of huge-scale draws"));
}

TEST(AddBest, TakesTheOneThatIsHardestToBeatAndSaysWhichIsMissing) {
  Speed speed;
  speed.headline = kBestBaseline;
  speed.baselines["eager"].speedup = 2.5;
  speed.baselines["compiled"].speedup = 1.2;
  speed.baselines["compiled"].decision = "faster";
  speed.baselines["compiled"].note = "1 measurement was repeated";
  AddBest({{"no compiler", {"compiled-max-autotune", "compiled-reduce-overhead"}}}, &speed);
  ASSERT_EQ(speed.baselines.size(), 3u);
  const BaselineResult& best = speed.baselines.at(kBestBaseline);
  EXPECT_EQ(best.speedup, 1.2);
  EXPECT_EQ(best.decision, "faster");
  EXPECT_EQ(best.note,
            "compiled, the hardest to beat of compiled, eager; compiled-max-autotune, "
            "compiled-reduce-overhead are left out: no compiler; 1 measurement was repeated");
  EXPECT_EQ(speed.baselines.at("compiled").note, "1 measurement was repeated");
}

TEST(OutcomeMessage, UnsettledNamesItsCauseAndTheOptionThatHelps) {
  Speed speed;
  speed.headline = "eager";
  BaselineResult& result = speed.baselines["eager"];
  result.pairs = 2;
  const auto message = [&] { return OutcomeMessage(Outcome::kUnsettled, speed, "eager"); };
  EXPECT_THAT(message(), testing::HasSubstr("too noisy here"));
  result.why_unsettled = {UnsettledCause::kBudget, 25};
  EXPECT_THAT(message(), testing::HasSubstr("after 2 pairs"));
  EXPECT_THAT(message(), testing::HasSubstr("--budget 25"));
  for (const UnsettledCause cause :
       {UnsettledCause::kCharges, UnsettledCause::kCopies, UnsettledCause::kBlocks,
        UnsettledCause::kMemory, UnsettledCause::kAlone, UnsettledCause::kLibraries,
        UnsettledCause::kUnseen}) {
    result.why_unsettled = {cause, 0};
    EXPECT_THAT(message(), testing::HasSubstr("it is open whether it beats eager: "));
  }
}

TEST(NoteOfDrawsForTime, CountsThoseThatWereLeftOutWhateverTheReasonSays) {
  const DrawRecord passed{"ordinary", 1, "passed", "left out for the time", 0.5};
  DrawRecord dropped{"ties", 2, "dropped", "in other words", 0};
  EXPECT_EQ(NoteOfDrawsForTime({passed, dropped}), "");
  dropped.for_time = true;
  EXPECT_THAT(NoteOfDrawsForTime({passed, dropped}), testing::StartsWith("1 of 2 kinds"));
}

TEST(NoteOfFloat64, SaysHowManyPiecesThereAre) {
  ProblemDescription description;
  EXPECT_EQ(NoteOfFloat64(description), "");
  description.float64_pieces = 8;
  EXPECT_THAT(NoteOfFloat64(description), testing::HasSubstr("on 8 pieces of the batch"));
}

// A softmax without its maximum was correct on three draws, and the card named kinds of draws as
// 'not applicable' alone.
TEST(NoteOfFloat64, SaysThatUnusualValuesAreNotTried) {
  ProblemDescription description;
  description.float64_supported = false;
  EXPECT_EQ(NoteOfFloat64(description), "");
  wire::ArgumentSpec output{};
  output.role = wire::Role::kOutput;
  output.dtype = wire::DType::kFloat32;
  description.arguments.push_back(output);
  EXPECT_THAT(NoteOfFloat64(description), testing::HasSubstr("random signs alone"));
  description.own_check = true;
  EXPECT_EQ(NoteOfFloat64(description), "");
}

TEST(ConstantsNote, NamesTheConstantsThatACandidateShares) {
  const std::map<std::string, std::string> set{{"N", "16"}, {"ROWS", "4"}, {"DIM", "2"}};
  EXPECT_EQ(ConstantsNote("import torch\nN = 64\nROWS: int = 3\ndef f():\n    DIM = 1\n", set),
            "its own N, ROWS were set as in the problem");
  EXPECT_EQ(ConstantsNote("NAME = 1\nif N == 3: pass\n", {{"N", "16"}}), "");
}

}  // namespace
}  // namespace assay
