#include "search/prompt_writer.h"

#include <gmock/gmock.h>

#include "base/utf8.h"
#include "model/sample_verdicts.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

PromptWriterTerms Terms() {
  PromptWriterTerms terms;
  terms.problem.name = "softmax";
  terms.problem.source = "class Model: ...\n";
  terms.signature = {"input x float32[2, 3]", "output out float32[2, 3]"};
  return terms;
}

PromptWriter Make(const PromptWriterTerms& terms = Terms()) {
  return PromptWriter::Make(PromptTemplates::Load(ASSAY_SOURCE_DIRECTORY "/prompts", "").value(),
                            terms)
      .value();
}

Tried With(const std::string& source, Outcome outcome, const std::string& idea = "") {
  Tried tried;
  tried.key = "judge/0/0";
  tried.source = source;
  tried.verdict = SampleVerdict(outcome);
  tried.idea = idea;
  return tried;
}

TEST(PromptWriter, AsksByOperation) {
  const PromptWriter writer = Make();
  const Tried slow = With("int slow;", Outcome::kSlower),
              wrong = With("int wrong;", Outcome::kWrong);
  EXPECT_THAT(writer.Ask({"draft", {}, {}, ""}).text, HasSubstr("Write a kernel"));
  EXPECT_THAT(writer.Ask({"realise", {}, {}, "one pass"}).text,
              AllOf(HasSubstr("Write a kernel"), HasSubstr("one pass")));
  EXPECT_THAT(writer.Ask({"idea", {&slow}, {}, ""}).text,
              AllOf(HasSubstr("Do not write code"), HasSubstr("int slow;")));
  EXPECT_THAT(writer.Ask({"refine", {&slow}, {}, ""}).text,
              AllOf(HasSubstr("Make it faster"), HasSubstr("int slow;"), HasSubstr("eager takes")));
  EXPECT_THAT(writer.Ask({"repair", {&wrong}, {}, ""}).text,
              AllOf(HasSubstr("Repair it"), HasSubstr("int wrong;"), HasSubstr("Verdict: wrong")));
  EXPECT_THAT(writer.Ask({"cross", {&slow, &wrong}, {}, ""}).text,
              AllOf(HasSubstr("joins the best"), HasSubstr("int slow;"), HasSubstr("int wrong;")));
  EXPECT_THAT(writer.Ask({"ablate", {&slow}, {}, ""}).text,
              AllOf(HasSubstr("Take it out"), HasSubstr("int slow;")));
  Tried there = slow;
  there.verdict->machine.cpu = "a processor elsewhere";
  there.verdict->machine.gpu.clear();
  EXPECT_THAT(writer.Ask({"port", {&slow}, {}, "", &there}).text,
              AllOf(HasSubstr("Fit it to"), HasSubstr("on a processor elsewhere"),
                    HasSubstr("judge's findings there")));
  const Prompt prompt = writer.Ask({"draft", {}, {}, ""});
  EXPECT_THAT(prompt.system, HasSubstr("fast compute kernels"));
  EXPECT_EQ(prompt.answer_tokens_max, 16'384);
}

TEST(PromptWriter, TellsWhatWasTriedAndTheMachine) {
  const Tried tried = With("int a;", Outcome::kFaster, "one pass over memory");
  const std::string text = Make().Ask({"draft", {}, {&tried}, ""}).text;
  EXPECT_THAT(text, AllOf(HasSubstr("- one pass over memory: faster: "), HasSubstr("AMD EPYC 7B13"),
                          HasSubstr("# Target")));
}

TEST(PromptWriter, AfterAnAnswerWithoutCodeAsksAgainAndSaysWhy) {
  Tried none;
  none.trouble = "there is no fenced block";
  EXPECT_THAT(Make().Ask({"repair", {&none}, {}, ""}).text,
              AllOf(HasSubstr("no code that can be used: there is no fenced block"),
                    HasSubstr("Write a kernel")));
}

TEST(PromptWriter, AParentThatFitsNoPromptIsLeftOut) {
  const Tried huge = With(std::string(500'000, 'x'), Outcome::kSlower);
  const Prompt prompt = Make().Ask({"refine", {&huge}, {}, ""});
  EXPECT_THAT(prompt.text, HasSubstr("Write a kernel"));
  EXPECT_LE(AboutTokens(prompt.text), 16'000);
}

TEST(PromptWriter, RefusesABudgetThatHoldsNoPrompt) {
  PromptWriterTerms terms = Terms();
  terms.prompt_tokens = 100;
  const auto made = PromptWriter::Make(
      PromptTemplates::Load(ASSAY_SOURCE_DIRECTORY "/prompts", "").value(), terms);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("allow more"));
}

TEST(PromptWriter, ReadsCodeAndIdeas) {
  const PromptWriter writer = Make();
  Answer answer;
  answer.text = "So:\n```cpp\n#include <assay/kernel.h>\nASSAY_KERNEL() {}\n```\n";
  EXPECT_EQ(writer.ReadCode(answer, "").value(), "#include <assay/kernel.h>\nASSAY_KERNEL() {}\n");
  EXPECT_EQ(writer.CandidateName(), "candidate.cpp");
  answer.text = "I would rather not.";
  EXPECT_FALSE(writer.ReadCode(answer, ""));
  answer.text = "<think>hm</think>\n\nRead each row once.\nKeep it in cache.\n```cpp\nint x;\n```";
  EXPECT_EQ(writer.ReadIdea(answer), "Read each row once. Keep it in cache.");
  answer.text = "  \n";
  EXPECT_EQ(writer.ReadIdea(answer), "");
  answer.text = "x";
  for (int i = 0; i < 1000; ++i) answer.text += "\u00e9";
  EXPECT_TRUE(IsUtf8(writer.ReadIdea(answer)));
}

TEST(PromptWriter, NamesFilesByForm) {
  PromptWriterTerms terms = Terms();
  terms.form = "device";
  EXPECT_EQ(Make(terms).CandidateName(), "candidate.cu");
  terms.form = "python";
  EXPECT_EQ(Make(terms).CandidateName(), "candidate.py");
  EXPECT_THAT(Make(terms).Ask({"draft", {}, {}, ""}).text,
              AllOf(HasSubstr("class ModelNew"), Not(HasSubstr("ASSAY_KERNEL"))));
}

}  // namespace
}  // namespace assay
