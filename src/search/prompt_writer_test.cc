#include "search/prompt_writer.h"

#include <gmock/gmock.h>

#include "model/sample_verdicts.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

WriterTerms Terms() {
  WriterTerms terms;
  terms.problem.name = "softmax";
  terms.problem.source = "class Model(nn.Module): ...\n";
  terms.signature = {"input x float32[64, 1024]", "output out float32[64, 1024]"};
  terms.machine = "two cores";
  return terms;
}

PromptWriter Writing(WriterTerms terms = Terms()) {
  return PromptWriter::Make(PromptTemplates::Load(ASSAY_SOURCE_DIRECTORY "/prompts", "").value(),
                            std::move(terms))
      .value();
}

Attempt Judged(Outcome outcome, const std::string& source) {
  return {"judge/0/0", source, SampleVerdict(outcome), "", ""};
}

TEST(PromptWriter, ADraftHasTheReferenceAndTheDeclaration) {
  const Prompt prompt = Writing().Ask({"draft", {}, {}, ""});
  EXPECT_THAT(prompt.text, AllOf(HasSubstr("class Model(nn.Module): ..."),
                                 HasSubstr("ASSAY_KERNEL(assay::Tensor<const float, 2> x"),
                                 HasSubstr("two cores")));
  EXPECT_FALSE(prompt.system.empty());
}

TEST(PromptWriter, AnIdeaIsToldWhereItIsToBeRealised) {
  EXPECT_THAT(Writing().Ask({"realise", {}, {}, "keep the row in registers"}).text,
              HasSubstr("keep the row in registers"));
}

TEST(PromptWriter, ARepairTellsWhatFailedAndARefinementWhatIsKnownOfItsCode) {
  WriterTerms terms = Terms();
  int read = 0;
  terms.read_code = [&](const std::string& source) -> std::optional<NativeCode> {
    EXPECT_EQ(source, "int fast;\n");
    ++read;
    return std::nullopt;
  };
  const PromptWriter writer = Writing(std::move(terms));
  const Attempt failed = Judged(Outcome::kBuildFailed, "int broken\n");
  EXPECT_THAT(writer.Ask({"repair", {&failed}, {}, ""}).text, HasSubstr("int broken\n"));
  EXPECT_EQ(read, 0);
  const Attempt good = Judged(Outcome::kFaster, "int fast;\n");
  EXPECT_THAT(writer.Ask({"refine", {&good}, {}, ""}).text, HasSubstr("int fast;\n"));
  EXPECT_EQ(read, 1);
}

TEST(PromptWriter, AnAnswerWithoutCodeIsToldWhatItLacked) {
  const Attempt empty{"propose/0/0", "", std::nullopt, "the answer has no code", ""};
  EXPECT_THAT(Writing().Ask({"repair", {&empty}, {}, ""}).text,
              HasSubstr("the answer has no code"));
}

TEST(PromptWriter, TurnsBeforeAreNamedByTheirIdeaOrTheirFirstComment) {
  Attempt first = Judged(Outcome::kWrong, "// one pass over the row\nint x;\n");
  Attempt second = Judged(Outcome::kFaster, "int y;\n");
  second.idea = "two rows at a time";
  const Attempt last = Judged(Outcome::kFaster, "int z;\n");
  EXPECT_THAT(Writing().Ask({"refine", {&last}, {&first, &second}, ""}).text,
              AllOf(HasSubstr("one pass over the row"), HasSubstr("wrong"),
                    HasSubstr("two rows at a time")));
}

TEST(PromptWriter, AParentThatIsTooLongForAnyPromptIsLeft) {
  const Attempt huge = Judged(Outcome::kFaster, std::string(1 << 20, 'x'));
  EXPECT_THAT(Writing().Ask({"refine", {&huge}, {}, ""}).text, Not(HasSubstr("xxxx")));
}

TEST(PromptWriter, ReadsCodeAndIdeas) {
  const PromptWriter writer = Writing();
  const Answer answer{"Here:\n```cpp\nASSAY_KERNEL(...) {}\n```\n", "", "", "stop", {}};
  EXPECT_EQ(writer.ReadCode(answer, ""), "ASSAY_KERNEL(...) {}\n");
  EXPECT_FALSE(writer.ReadCode({"I cannot.", "", "", "stop", {}}, "").has_value());
  EXPECT_EQ(writer.ReadIdea({"\nKeep it short.\n\nMore.", "", "", "stop", {}}), "Keep it short.");
  EXPECT_EQ(writer.CandidateName(), "candidate.cpp");
}

TEST(PromptWriter, RefusesAnUnknownForm) {
  WriterTerms terms = Terms();
  terms.form = "verse";
  const auto made = PromptWriter::Make(
      PromptTemplates::Load(ASSAY_SOURCE_DIRECTORY "/prompts", "").value(), std::move(terms));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("give native, device or python"));
}

}  // namespace
}  // namespace assay
