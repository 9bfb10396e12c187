#include "search/prompt.h"

#include <gmock/gmock.h>

#include "model/sample_verdicts.h"
#include "problem/gradients.h"

namespace assay {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kPlenty = 100'000;
constexpr PromptOperator kAll[] = {PromptOperator::kIdea,      PromptOperator::kImplement,
                                   PromptOperator::kRefine,    PromptOperator::kRepair,
                                   PromptOperator::kCrossover, PromptOperator::kAblate,
                                   PromptOperator::kPort};

const PromptTemplates& Shipped() {
  static const PromptTemplates templates =
      PromptTemplates::Load(ASSAY_SOURCE_DIRECTORY "/prompts", "").value();
  return templates;
}

ProblemRequest Softmax() {
  ProblemRequest problem;
  problem.name = "softmax";
  problem.source = "class Model(nn.Module): ...  # the reference\n";
  problem.set = {{"ROWS", "64"}};
  return problem;
}

// With every part of a prompt.
PromptSubject Whole(const ProblemRequest& problem) {
  PromptSubject subject{problem};
  subject.signature = {"input x float32[64, 1024]", "output out float32[64, 1024]"};
  subject.machine = "the machine";
  subject.target = "the target";
  subject.idea = "the idea";
  subject.parents = {
      {"int first;",
       {{"outcome", "first outcome"}, {"bound", "first bound"}, {"code", "first code"}}},
      {"int second;", {{"outcome", "second outcome"}, {"code", "second code"}}}};
  subject.tried = {{"oldest idea", "wrong"}, {"newest idea", "faster, 1.8x"}};
  subject.budget = "12 evaluations are left.";
  return subject;
}

std::string TextOf(PromptOperator which, const PromptSubject& subject) {
  const auto built = BuildPrompt(Shipped(), which, subject, kPlenty);
  EXPECT_TRUE(built) << built.error().message;
  return built ? built->text : std::string();
}

TEST(Prompt, HasItsTaskInEveryOperatorAndForm) {
  const ProblemRequest problem = Softmax();
  for (const PromptOperator which : kAll) {
    for (const char* form : {"native", "device", "python"}) {
      PromptSubject subject = Whole(problem);
      subject.form = form;
      const std::string text = TextOf(which, subject);
      EXPECT_THAT(text, AllOf(HasSubstr("# the reference"), HasSubstr("input x float32[64, 1024]"),
                              HasSubstr("ROWS = 64"), HasSubstr("the machine"),
                              HasSubstr("12 evaluations"), Not(HasSubstr("{{"))));
      if (subject.form != "python") {
        EXPECT_THAT(text, Not(HasSubstr("\n\n\n")));
      }
    }
  }
}

TEST(Prompt, OfAnImplementationHasFormRulesAndAWorkedPair) {
  const ProblemRequest problem = Softmax();
  const std::string text = TextOf(PromptOperator::kImplement, Whole(problem));
  EXPECT_THAT(text, AllOf(HasSubstr("assay::Tensor<const float, 2> x"), HasSubstr("the idea"),
                          HasSubstr("torch.relu(x - x.mean"), HasSubstr("arithmetic in float32"),
                          HasSubstr("- newest idea: faster, 1.8x")));
  EXPECT_THAT(text, Not(HasSubstr("int first;")));
}

TEST(Prompt, SaysThatBackwardIsJudgedAndWhatTheFormOwesIt) {
  ProblemRequest problem = Softmax();
  AddGradients(&problem);
  PromptSubject subject = Whole(problem);
  subject.signature = {"input x float32[64, 8]", "input gradient_1 float32[64, 8]",
                       "output out float32[64, 8]", "output out1 float32[64, 8]"};
  for (const PromptOperator which : kAll) {
    for (const char* form : {"native", "device", "python"}) {
      subject.form = form;
      const std::string text = TextOf(which, subject);
      EXPECT_THAT(text, AllOf(HasSubstr("# the reference\n```\n\nForward and backward are judged"),
                              HasSubstr(subject.form == "python" ? "asks autograd" : "gradient_1"),
                              Not(HasSubstr("assay_host"))));
    }
  }
  EXPECT_THAT(TextOf(PromptOperator::kImplement, subject), HasSubstr("def forward(self, x): ..."));
  subject.form = "native";
  EXPECT_THAT(TextOf(PromptOperator::kImplement, subject),
              HasSubstr("assay::Tensor<const float, 2> gradient_1"));
  EXPECT_THAT(TextOf(PromptOperator::kImplement, Whole(Softmax())), Not(HasSubstr("backward")));
}

// The numbers are gate 1's (docs/measurement.md): 512 u of float32; 2 u and 8 u of bfloat16.
TEST(Prompt, SaysWhichErrorsAndFlagsAreAllowed) {
  ProblemRequest problem = Softmax();
  PromptSubject subject = Whole(problem);
  const std::string native = TextOf(PromptOperator::kImplement, subject);
  EXPECT_THAT(native, AllOf(HasSubstr("errors may be 3.05e-05 of its values"),
                            HasSubstr("-ffast-math,"), HasSubstr("judged at these sizes")));
  subject.form = "device";
  EXPECT_THAT(TextOf(PromptOperator::kImplement, subject), HasSubstr("-maxrregcount=16 to 255,"));
  problem.precision = "bfloat16";
  EXPECT_THAT(TextOf(PromptOperator::kImplement, subject),
              AllOf(HasSubstr("may be 0.00781 of its"), HasSubstr("element's error 0.0312 of")));
  problem.tolerance = "allclose:1e-2";
  EXPECT_THAT(TextOf(PromptOperator::kImplement, subject),
              HasSubstr("differ from the reference's by 1e-2 + 1e-2 times its size"));
  subject.signature.back() = "output out int64[64]";
  problem.tolerance.clear();
  EXPECT_THAT(TextOf(PromptOperator::kImplement, subject), HasSubstr("must be equal"));
}

TEST(Prompt, AsksForAFenceWhereTheAnswerIsText) {
  const ProblemRequest problem = Softmax();
  PromptSubject subject = Whole(problem);
  EXPECT_THAT(TextOf(PromptOperator::kImplement, subject),
              AllOf(HasSubstr("```cpp\n#include <assay/kernel.h>\nASSAY_KERNEL("),
                    testing::EndsWith("fenced code block, and nothing after it.\n")));
  subject.by_call = true;
  EXPECT_THAT(TextOf(PromptOperator::kImplement, subject), Not(HasSubstr("fenced code block")));
}

TEST(Prompt, OfParentsHasTheirSourceAndFeedback) {
  const ProblemRequest problem = Softmax();
  const PromptSubject subject = Whole(problem);
  for (const PromptOperator which : {PromptOperator::kRefine, PromptOperator::kRepair})
    EXPECT_THAT(TextOf(which, subject),
                AllOf(HasSubstr("```cpp\nint first;\n```"), HasSubstr("first outcome"),
                      Not(HasSubstr("int second;"))));
  EXPECT_THAT(
      TextOf(PromptOperator::kCrossover, subject),
      AllOf(HasSubstr("int first;"), HasSubstr("int second;"), HasSubstr("second outcome")));
}

TEST(Prompt, OfAnAblationAsksForOneTrickLess) {
  const ProblemRequest problem = Softmax();
  EXPECT_THAT(TextOf(PromptOperator::kAblate, Whole(problem)),
              AllOf(HasSubstr("int first;"), HasSubstr("Take it out"), HasSubstr("newest idea"),
                    HasSubstr("First name the trick"), Not(HasSubstr("int second;"))));
}

TEST(Prompt, OfAPortSaysWhatWasFoundThereAndHere) {
  const ProblemRequest problem = Softmax();
  PromptSubject subject = Whole(problem);
  Verdict there = SampleVerdict(Outcome::kFaster);
  there.problem.size = "large";
  there.problem.set = {{"ROWS", "4096"}};
  there.machine.gpu.clear();
  there.machine.cpu = "another processor";
  there.machine.threads = 8;
  there.problem.signature = {"input x float32[4096, 1024]"};
  subject.origin = OriginText(there);
  EXPECT_EQ(subject.origin,
            "at size large, ROWS = 4096, on another processor, 8 threads (input x float32[4096, "
            "1024])");
  const std::string text = TextOf(PromptOperator::kPort, subject);
  EXPECT_THAT(text, AllOf(HasSubstr(subject.origin), HasSubstr("int first;"),
                          HasSubstr("ROWS = 64"), HasSubstr("first outcome"),
                          HasSubstr("second outcome"), Not(HasSubstr("int second;"))));
  // Of the two, that from elsewhere goes first.
  const auto whole = BuildPrompt(Shipped(), PromptOperator::kPort, subject, kPlenty).value();
  EXPECT_THAT(BuildPrompt(Shipped(), PromptOperator::kPort, subject, whole.tokens - 1)->dropped,
              ElementsAre("second_feedback"));
}

TEST(Prompt, OfAnIdeaAsksForNoCode) {
  const ProblemRequest problem = Softmax();
  EXPECT_THAT(TextOf(PromptOperator::kIdea, Whole(problem)),
              AllOf(HasSubstr("No code"), Not(HasSubstr("ASSAY_KERNEL")),
                    HasSubstr("written in C++, for a processor.")));
}

TEST(Prompt, FencesCodeThatHasFences) {
  const ProblemRequest problem = Softmax();
  PromptSubject subject = Whole(problem);
  subject.parents[0].source = "// ```\nint x;";
  EXPECT_THAT(TextOf(PromptOperator::kRefine, subject), HasSubstr("````cpp\n// ```\nint x;\n````"));
}

TEST(Prompt, DropsTheLeastUsefulPartsFirst) {
  const ProblemRequest problem = Softmax();
  const PromptSubject subject = Whole(problem);
  const auto whole = BuildPrompt(Shipped(), PromptOperator::kCrossover, subject, kPlenty).value();
  EXPECT_THAT(whole.dropped, IsEmpty());
  std::vector<std::string> last;
  int64_t allowed = whole.tokens;
  while (true) {
    const auto built = BuildPrompt(Shipped(), PromptOperator::kCrossover, subject, allowed);
    if (!built) {
      EXPECT_THAT(built.error().message, HasSubstr("allow more"));
      break;
    }
    EXPECT_LE(built->tokens, allowed);
    EXPECT_THAT(built->text, AllOf(HasSubstr("int first;"), HasSubstr("first outcome"),
                                   HasSubstr("# the reference"), HasSubstr("ASSAY_KERNEL")));
    last = built->dropped;
    allowed = built->tokens - 1;
  }
  EXPECT_THAT(last, ElementsAre("second_feedback", "code", "ideas", "example", "machine", "bound",
                                "target", "budget"));
}

TEST(Prompt, DropsTheOldestIdeasFirst) {
  const ProblemRequest problem = Softmax();
  PromptSubject subject = Whole(problem);
  subject.parents.clear();
  subject.tried[0].idea = std::string(4000, 'o');
  const auto whole = BuildPrompt(Shipped(), PromptOperator::kImplement, subject, kPlenty).value();
  const auto built =
      BuildPrompt(Shipped(), PromptOperator::kImplement, subject, whole.tokens - 1).value();
  EXPECT_THAT(built.dropped, ElementsAre("ideas"));
  EXPECT_THAT(built.text, AllOf(HasSubstr("newest idea"), Not(HasSubstr("oooo"))));
}

TEST(Prompt, RulesFollowTheProblem) {
  ProblemRequest problem = Softmax();
  EXPECT_THAT(TextOf(PromptOperator::kImplement, Whole(problem)),
              AllOf(HasSubstr("other sizes"), HasSubstr("weights prepared in one, are wrong"),
                    Not(HasSubstr("NaN or infinite")), Not(HasSubstr("librar")),
                    Not(HasSubstr("has a `check`"))));
  problem.weights = WeightsKind::kConstant;
  problem.special_values = "required";
  problem.allow_libraries = false;
  problem.ragged = {{"ROWS", {1, 67}}};
  problem.precision = "tf32";
  problem.source += "\ndef check(inputs, outputs):\n    return None\n";
  EXPECT_THAT(TextOf(PromptOperator::kImplement, Whole(problem)),
              AllOf(HasSubstr("has a `check` that judges"), HasSubstr("The file's `check` decides"),
                    Not(HasSubstr("against float64")),
                    HasSubstr("any mix of ROWS from 1 to 67 (ends included)"),
                    HasSubstr("may be prepared once"), HasSubstr("NaN or infinite"),
                    HasSubstr("No libraries"), HasSubstr("arithmetic in tf32")));
}

TEST(Prompt, FaultsAreNamed) {
  const ProblemRequest problem = Softmax();
  PromptSubject subject = Whole(problem);
  subject.parents.resize(1);
  EXPECT_THAT(BuildPrompt(Shipped(), PromptOperator::kCrossover, subject, kPlenty).error().message,
              HasSubstr("crossover needs 2 parents"));
  subject.form = "rust";
  EXPECT_THAT(BuildPrompt(Shipped(), PromptOperator::kRefine, subject, kPlenty).error().message,
              HasSubstr("native, device and python"));
}

TEST(Entry, DeclaresEveryKindOfArgument) {
  const std::vector<std::string> signature = {"input x bfloat16[2, 3], which forward changes",
                                              "input n int",
                                              "input s float",
                                              "input flag bool",
                                              "parameter linear.weight int64[4]",
                                              "output x_after bfloat16[2, 3]",
                                              "output out float32[]"};
  EXPECT_EQ(EntryOf(signature, "native").value(),
            "#include <assay/kernel.h>\n"
            "ASSAY_KERNEL(assay::Tensor<assay::bfloat16, 2> x,\n"
            "             int64_t n,\n"
            "             double s,\n"
            "             bool flag,\n"
            "             assay::Tensor<const int64_t, 1> linear_weight,\n"
            "             assay::Tensor<float, 0> out) { ... }");
  EXPECT_THAT(EntryOf(signature, "device").value(),
              AllOf(HasSubstr("// __nv_bfloat16* x, rank 2"),
                    HasSubstr("// const long long* linear_weight, rank 1")));
  EXPECT_THAT(EntryOf(signature, "python").value(), HasSubstr("forward(self, x, n, s, flag)"));
}

TEST(Entry, RefusesALineThatDescribesNoArgument) {
  for (const char* line : {"", "x", "input x", "input x float99[2]"})
    EXPECT_FALSE(EntryOf({line}, "native")) << line;
}

TEST(PromptFacts, OfMachineAndTarget) {
  MachineProfile profile;
  profile.caches = {{1, 32 << 10, 1}};
  Ceilings& ceilings = profile.ceilings.emplace_back();
  ceilings.threads = 1;
  ceilings.read_bytes_s = 1e10;
  ceilings.copy_bytes_s = 8e9;
  ceilings.float32_operations_s = {{"avx2", 5e10}};
  const Verdict verdict = SampleVerdict(Outcome::kFaster);
  EXPECT_THAT(MachineText(verdict.machine, profile),
              AllOf(HasSubstr("AMD EPYC 7B13, 2 cores; each side may use 2 threads."),
                    HasSubstr("L1 32.8 KB for 1 core"), HasSubstr("memory reads 10.0 GB/s"),
                    HasSubstr("(avx2)")));
  EXPECT_THAT(MachineText(verdict.machine, {}), Not(HasSubstr("Measured")));
  EXPECT_THAT(MachineText(verdict.machine, profile), Not(HasSubstr("Instruction sets")))
      << "those of another processor";
  profile.cpu = verdict.machine.cpu;
  EXPECT_THAT(MachineText(verdict.machine, profile), HasSubstr("Instruction sets: avx2."));
  EXPECT_THAT(TargetText(verdict), AllOf(HasSubstr("eager takes"), HasSubstr("the bound")));
  EXPECT_EQ(TargetText(SampleVerdict(Outcome::kWrong)), "");
}

}  // namespace
}  // namespace assay
