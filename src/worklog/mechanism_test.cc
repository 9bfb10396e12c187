#include "worklog/mechanism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worklog/worklog_testing.h"

namespace assay {
namespace {

using testing::HasSubstr;

TEST(Mechanism, NamesComeBack) {
  for (const MechanismFacts& facts : AllMechanisms()) {
    EXPECT_EQ(MechanismFromName(facts.name), facts.mechanism);
    EXPECT_EQ(FactsOf(facts.mechanism).name, facts.name);
    EXPECT_THAT(MechanismNames(), HasSubstr(std::string(facts.name)));
  }
  EXPECT_FALSE(MechanismFromName("luck"));
}

TEST(Mechanism, FusionShowsInBytesThatWereSaved) {
  Verdict verdict = SpeedVerdict("a", 3);
  verdict.work = Work{};
  verdict.work->bytes = 1e6;
  verdict.work->unfused_bytes = 4e6;
  verdict.roofline.reset();
  Evidence evidence = EvidenceFor(Mechanism::kFusion, verdict, "");
  EXPECT_EQ(evidence.kind, Evidence::Kind::kFound);
  EXPECT_THAT(evidence.text, HasSubstr("4.0 times the compulsory"));
  verdict = SpeedVerdict("a", 0.5);
  verdict.work = Work{};
  verdict.work->bytes = 1e6;
  verdict.work->unfused_bytes = 4e6;
  verdict.roofline.reset();
  EXPECT_EQ(EvidenceFor(Mechanism::kFusion, verdict, "").kind, Evidence::Kind::kAgainst);
  verdict.work->unfused_bytes = 1e6;
  EXPECT_THAT(EvidenceFor(Mechanism::kFusion, verdict, "").text, HasSubstr("nothing to fuse"));
}

TEST(Mechanism, TrafficIsSetBesideTheBaseline) {
  Verdict verdict = SpeedVerdict("a", 3);
  verdict.work = Work{};
  verdict.work->bytes = 1e6;
  verdict.roofline = Roofline{};
  verdict.roofline->percent_of_peak = 60;
  verdict.roofline->reference_percent_of_peak = 20;
  EXPECT_EQ(EvidenceFor(Mechanism::kMemoryMovement, verdict, "").kind, Evidence::Kind::kFound);
  verdict.roofline->reference_percent_of_peak = 59;
  EXPECT_EQ(EvidenceFor(Mechanism::kMemoryMovement, verdict, "").kind, Evidence::Kind::kAgainst);
}

TEST(Mechanism, TensorCoresShowInMachineCodeAlone) {
  EXPECT_EQ(EvidenceFor(Mechanism::kTensorCores, SpeedVerdict("a", 3), "wgmma").kind,
            Evidence::Kind::kAgainst);
  Verdict gpu = SampleGpuVerdict();
  ASSERT_FALSE(gpu.kernels.empty());
  for (KernelRecord& kernel : gpu.kernels) kernel.instructions = {{"fma", 4}};
  EXPECT_EQ(EvidenceFor(Mechanism::kTensorCores, gpu, "").kind, Evidence::Kind::kAgainst);
  gpu.kernels[0].instructions["matrix"] = 12;
  EXPECT_THAT(EvidenceFor(Mechanism::kTensorCores, gpu, "").text, HasSubstr("12 matrix"));
  EXPECT_EQ(EvidenceFor(Mechanism::kTensorCores, gpu, "").kind, Evidence::Kind::kFound);
  gpu.kernels[0].instructions["async_copy"] = 2;
  EXPECT_EQ(EvidenceFor(Mechanism::kAsynchronousCopies, gpu, "").kind, Evidence::Kind::kFound);
}

TEST(Mechanism, VectorsShowInTheSource) {
  const Verdict verdict = SpeedVerdict("a", 3);
  EXPECT_EQ(
      EvidenceFor(Mechanism::kVectorising, verdict, "__m512 x;\nx = _mm512_add_ps(x, x);\n").text,
      "2 lines of the source name vectors.");
  EXPECT_EQ(EvidenceFor(Mechanism::kVectorising, verdict, "for (;;) {}").kind,
            Evidence::Kind::kUnknown);
}

TEST(Mechanism, NothingIsInventedWithoutASpeed) {
  const Verdict verdict = SampleVerdict(Outcome::kBuildFailed);
  for (const MechanismFacts& facts : AllMechanisms()) {
    const Evidence evidence = EvidenceFor(facts.mechanism, verdict, "");
    EXPECT_NE(evidence.kind, Evidence::Kind::kFound) << facts.name;
    EXPECT_FALSE(evidence.text.empty());
  }
}

}  // namespace
}  // namespace assay
