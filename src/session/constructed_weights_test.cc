#include "session/constructed_weights.h"

#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "values/slot_layout.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

Verdict Judged(Outcome outcome, const std::string& hint = "") {
  Verdict verdict;
  verdict.outcome = outcome;
  verdict.correctness.emplace().passed = IsCorrect(outcome);
  verdict.correctness->hint = hint;
  verdict.cost.timed_s = 1;
  if (outcome != Outcome::kFaster) return verdict;
  Speed& speed = verdict.speed.emplace();
  speed.headline = "eager";
  speed.passed = true;
  BaselineResult& eager = speed.baselines["eager"];
  eager.decision = "faster";
  eager.speedup = eager.certified_speedup = 2;
  return verdict;
}

const WeightsMatch kLacking{WeightsMatch::How::kFromSeed, 1, 1, {"fc_weight"}, true, false};
const WeightsMatch kByOrder{WeightsMatch::How::kByOrder, 0, 0, {}, false, true};
const WeightsMatch kByName{WeightsMatch::How::kByName, 0, 0, {}, false, false};

TEST(ConcludeConstructed, ACorrectCandidateIsJudgedOnItsOwnWeights) {
  const Verdict verdict = ConcludeConstructed(Judged(Outcome::kWeightsDiffer),
                                              Judged(Outcome::kSlower), {kLacking, {}, false});
  EXPECT_EQ(verdict.outcome, Outcome::kSlower);
  EXPECT_THAT(verdict.correctness->note, HasSubstr("judged as by --weights constructed"));
  EXPECT_EQ(verdict.correctness->right_with_weights, WeightsKind::kConstructed);
  EXPECT_DOUBLE_EQ(verdict.cost.timed_s, 2);
}

TEST(ConcludeConstructed, AWinOnPreparedWeightsHasToBeAskedFor) {
  const Verdict won = Judged(Outcome::kFaster);
  const Verdict verdict =
      ConcludeConstructed(Judged(Outcome::kWeightsDiffer), won, {kLacking, {}, false});
  EXPECT_EQ(verdict.outcome, Outcome::kUnsettled);
  EXPECT_FALSE(verdict.speed->passed);
  EXPECT_EQ(verdict.speed->baselines.at("eager").decision, "unsettled");
  EXPECT_EQ(verdict.speed->baselines.at("eager").certified_speedup, 0);
  EXPECT_THAT(verdict.message, HasSubstr("where --weights constructed is asked for"));
  const Verdict allowed =
      ConcludeConstructed(Judged(Outcome::kWeightsDiffer), won, {kLacking, {}, true});
  EXPECT_EQ(allowed.outcome, Outcome::kFaster);
}

TEST(ConcludeConstructed, UniformWeightsProveNothing) {
  const ConstructedFinding finding{kLacking, {"norm_weight"}, false};
  const Verdict verdict = ConcludeConstructed(Judged(Outcome::kWeightsDiffer, "off by 2"),
                                              Judged(Outcome::kCorrect), finding);
  EXPECT_EQ(verdict.outcome, Outcome::kWeightsDiffer);
  EXPECT_THAT(verdict.message, HasSubstr("where norm_weight has the same value everywhere"));
  const Verdict folded =
      ConcludeConstructed(Judged(Outcome::kWrong, "off by 2"), Judged(Outcome::kCorrect),
                          {kByName, {"norm_weight", "norm_bias"}, false});
  EXPECT_EQ(folded.outcome, Outcome::kWrong);
  EXPECT_THAT(folded.message, HasSubstr("it prepares them once, or leaves them out"));
  EXPECT_EQ(folded.correctness->right_with_weights, WeightsKind::kConstructed);
  // An adapter's weights of 1e-9 were scaled up: none of them is the same everywhere.
  const Verdict adapter = ConcludeConstructed(Judged(Outcome::kWrong, "off by 2"),
                                              Judged(Outcome::kCorrect), {kByName, {}, false});
  EXPECT_THAT(adapter.message, HasSubstr("right on weights as constructed alone: it prepares"));
}

TEST(ConcludeConstructed, AWrongCandidateStaysWhatItWas) {
  const Verdict wrong = Judged(Outcome::kWrong, "off by 2");
  EXPECT_EQ(ConcludeConstructed(wrong, wrong, {kByName, {}, false}).correctness->hint, "off by 2");
  const Verdict guessed =
      ConcludeConstructed(Judged(Outcome::kWeightsDiffer), wrong, {kByOrder, {}, false});
  EXPECT_THAT(guessed.message, HasSubstr("two of one shape may have changed places"));
  const Verdict differs =
      ConcludeConstructed(Judged(Outcome::kWeightsDiffer), wrong, {kLacking, {}, false});
  EXPECT_EQ(differs.outcome, Outcome::kWeightsDiffer);
  EXPECT_THAT(differs.message, HasSubstr("not right either: off by 2"));
}

TEST(SayRightWithConstant, NamesTheRule) {
  Verdict verdict = Judged(Outcome::kWrong, "off by 2");
  SayRightWithConstant(false, &verdict);
  EXPECT_EQ(verdict.outcome, Outcome::kWrong);
  EXPECT_THAT(verdict.message, EndsWith("`--weights constant` allows it"));
  SayRightWithConstant(true, &verdict);
  EXPECT_THAT(verdict.message, HasSubstr("allows it, and then checks it at other sizes"));
  EXPECT_EQ(verdict.correctness->right_with_weights, WeightsKind::kConstant);
}

TEST(ConcludeConstructed, AFoulIsNotForgiven) {
  Verdict foul = Judged(Outcome::kFoul);
  EXPECT_EQ(
      ConcludeConstructed(Judged(Outcome::kWeightsDiffer), foul, {kLacking, {}, false}).outcome,
      Outcome::kFoul);
}

TEST(UniformParameters, AreThoseWhoseElementsAreEqual) {
  ProblemDescription description;
  const auto add = [&](const char* name, wire::Role role, wire::DType dtype, int64_t elements) {
    wire::ArgumentSpec argument{};
    std::string_view(name).copy(argument.name, wire::kNameBytes - 1);
    argument.role = role;
    argument.kind = wire::Kind::kTensor;
    argument.dtype = dtype;
    argument.rank = 1;
    argument.shape[0] = elements;
    argument.size_bytes = static_cast<uint64_t>(elements) * wire::ElementBytes(dtype);
    description.arguments.push_back(argument);
  };
  add("ones", wire::Role::kParameter, wire::DType::kFloat32, 3);
  add("drawn", wire::Role::kParameter, wire::DType::kFloat32, 3);
  add("scale", wire::Role::kParameter, wire::DType::kFloat16, 1);
  add("steps", wire::Role::kParameter, wire::DType::kInt64, 2);
  add("out", wire::Role::kOutput, wire::DType::kFloat32, 3);
  const auto plan = std::make_unique<wire::Plan>(LayOutSlots(description).value());
  std::vector<std::byte> weights(plan->weights_stride);
  const float ones[] = {1, 1, 1}, drawn[] = {1, 1, 2};
  std::memcpy(weights.data() + plan->arguments[0].offset, ones, sizeof ones);
  std::memcpy(weights.data() + plan->arguments[1].offset, drawn, sizeof drawn);
  EXPECT_THAT(UniformParameters(*plan, weights), ElementsAre("ones", "scale"));
}

}  // namespace
}  // namespace assay
