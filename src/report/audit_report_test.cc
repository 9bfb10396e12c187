#include "report/audit_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "model/verdict.h"
#include "report/text.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

MutantRecord Killed(const std::string& words, double margin) {
  MutantRecord mutant;
  mutant.family = "operator";
  mutant.words = words;
  mutant.result = MutantResult::kKilled;
  mutant.margin = margin;
  return mutant;
}

ProblemAudit Named(const std::string& name) {
  ProblemAudit audit;
  audit.problem.name = name;
  audit.tolerance = "error-ratio";
  audit.draws = 13;
  audit.seconds = 2;
  return audit;
}

std::vector<ProblemAudit> OneOfEach() {
  ProblemAudit clean = Named("softmax"), degenerate = Named("80_Gemm"), failed = Named("97_Attn");
  clean.mutants = {Killed("sum drops its second term", 12.3), Killed("all zero", 1e9)};
  MutantRecord zeros = Killed("all zero", 0.25);
  zeros.result = MutantResult::kSurvived;
  degenerate.mutants = {zeros, Killed("a copy of x", std::numeric_limits<double>::infinity())};
  degenerate.findings = {{"zero-output", "out", "all zero", 0.25, "inputs scaled by 16"},
                         {"survivor", "", "a copy of x", 0.5, ""}};
  clean.operators = {{"sum", 12, OperatorResult::kSeen, "", ""}};
  degenerate.operators = {{"relu", 7, OperatorResult::kUnseen, "relu is left out", ""},
                          {"add", 8, OperatorResult::kRedundant, "", ""}};
  failed.error = "forward fails: no such operator";
  return {clean, degenerate, failed};
}

TEST(RenderAudit, SaysOfEachProblemWhatBecameOfItsMutants) {
  const std::string text = RenderAudit(OneOfEach(), {false, true, 100});
  EXPECT_THAT(text, HasSubstr("1 degenerate, 1 not audited"));
  EXPECT_THAT(text, HasSubstr("2/2"));
  EXPECT_THAT(text, HasSubstr("12 sum drops its second term"));
  EXPECT_THAT(text, HasSubstr("zero-output: all zero: passes, at 0.25"));
  EXPECT_THAT(text, HasSubstr("inputs scaled by 16 would show it"));
  EXPECT_THAT(text, HasSubstr("no draw that was tried would show it"));
  EXPECT_THAT(text, HasSubstr("no such operator"));
  EXPECT_THAT(text, HasSubstr("of 2, all of whose mutants are killed"));
}

TEST(RenderAudit, AProblemWithItsOwnCheckHasNoBound) {
  std::vector<ProblemAudit> audits = OneOfEach();
  for (ProblemAudit& audit : audits) audit.tolerance = kByOwnCheck;
  const std::string text = RenderAudit(audits, {false, true, 100});
  EXPECT_THAT(text, HasSubstr("zero-output: all zero: the problem's own check lets it pass"));
  EXPECT_THAT(text, HasSubstr("13 draws, its own check"));
  EXPECT_THAT(text, Not(HasSubstr("12 sum drops its second term")));
}

TEST(RenderAudit, ACleanSuiteSaysSo) {
  const std::string text = RenderAudit({OneOfEach().front()}, {});
  EXPECT_THAT(text, HasSubstr("none degenerate"));
  EXPECT_THAT(text, Not(HasSubstr("mend")));
}

TEST(RenderAudit, EveryLineFitsTheWidthWhateverTheNames) {
  std::vector<ProblemAudit> audits = OneOfEach();
  audits[0].problem.name = std::string(120, 'n') + "\x1b[31m";
  audits[1].findings[0].detail = std::string(300, 'w');
  for (const int width : {60, 80, 100}) {
    const std::string text = RenderAudit(audits, {false, false, width});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      EXPECT_EQ(DisplayWidth(text.substr(at, end - at)), width) << text.substr(at, end - at);
      at = end + 1;
    }
  }
}

TEST(FormatMargin, IsShortAndNeverInfinite) {
  EXPECT_EQ(FormatMargin(0), "0");
  EXPECT_EQ(FormatMargin(0.314), "0.31");
  EXPECT_EQ(FormatMargin(23.4), "23");
  EXPECT_EQ(FormatMargin(std::numeric_limits<double>::infinity()), "> 1e6");
}

}  // namespace
}  // namespace assay
