#include "rules/audit_findings.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

MutantRecord Mutant(const std::string& family, MutantResult result, double margin = 0.5) {
  MutantRecord mutant;
  mutant.family = family;
  mutant.subject = "out";
  mutant.words = family + " in words";
  mutant.result = result;
  mutant.margin = margin;
  mutant.passes_ordinary = result == MutantResult::kSurvived;
  return mutant;
}

TEST(CoverOperators, AnOperatorIsSeenIfAllItsMutantsThatChangeSomethingFail) {
  std::vector<OperatorRecord> operators(4);
  std::vector<MutantRecord> mutants = {
      Mutant("operator", MutantResult::kKilled),     Mutant("operator", MutantResult::kEquivalent),
      Mutant("operator", MutantResult::kSurvived),   Mutant("operator", MutantResult::kKilled),
      Mutant("operator", MutantResult::kEquivalent), Mutant("zeros", MutantResult::kSurvived)};
  const int of[] = {0, 0, 1, 1, 2, -1};
  for (size_t i = 0; i < mutants.size(); ++i) mutants[i].operator_number = of[i];
  mutants[2].mend = "negated inputs";
  CoverOperators(mutants, &operators);
  EXPECT_EQ(operators[0].result, OperatorResult::kSeen);
  EXPECT_EQ(operators[1].result, OperatorResult::kUnseen);
  EXPECT_EQ(operators[1].mutant, "operator in words");
  EXPECT_EQ(operators[1].mend, "negated inputs");
  EXPECT_EQ(operators[2].result, OperatorResult::kRedundant);
  EXPECT_EQ(operators[3].result, OperatorResult::kRedundant);
}

TEST(FindingsOf, ASurvivorIsAFindingAndNothingElseIs) {
  MutantRecord copy = Mutant("copy", MutantResult::kSurvived, 0.25);
  copy.mend = "negated inputs";
  const auto findings = FindingsOf({Mutant("zeros", MutantResult::kKilled, 9), copy,
                                    Mutant("operator", MutantResult::kEquivalent, 0)},
                                   1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].name, "survivor");
  EXPECT_EQ(findings[0].detail, "copy in words");
  EXPECT_EQ(findings[0].margin, 0.25);
  EXPECT_EQ(findings[0].mend, "negated inputs");
}

TEST(FindingsOf, EachFamilyHasItsNameAndTheGravestComesFirst) {
  const auto findings = FindingsOf(
      {Mutant("batch", MutantResult::kSurvived), Mutant("weight", MutantResult::kSurvived),
       Mutant("input", MutantResult::kSurvived), Mutant("mean", MutantResult::kSurvived),
       Mutant("zeros", MutantResult::kSurvived)},
      2);
  ASSERT_EQ(findings.size(), 5U);
  EXPECT_EQ(findings[0].name, "zero-output");
  EXPECT_EQ(findings[1].name, "constant-output");
  EXPECT_EQ(findings[2].name, "ignores-input");
  EXPECT_EQ(findings[3].name, "ignores-weights");
  EXPECT_EQ(findings[4].name, "survivor");
}

TEST(FindingsOf, WhatFollowsFromAConstantOutputIsNotToldTwice) {
  const std::vector<MutantRecord> mutants = {Mutant("batch", MutantResult::kSurvived),
                                             Mutant("input", MutantResult::kSurvived),
                                             Mutant("constant", MutantResult::kSurvived)};
  const auto findings = FindingsOf(mutants, 1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].name, "constant-output");
  EXPECT_EQ(FindingsOf(mutants, 2).size(), 3U);  // another output may be sound
}

TEST(FindingsOf, WhatComputesNothingMustShowOnOrdinaryDraws) {
  MutantRecord zeros = Mutant("zeros", MutantResult::kKilled, 40);
  zeros.passes_ordinary = true;
  zeros.ordinary_margin = 0.25;
  zeros.draw = "outlier";
  MutantRecord epsilon = Mutant("operator", MutantResult::kKilled, 40);
  epsilon.passes_ordinary = true;
  const auto findings = FindingsOf({zeros, epsilon}, 1);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].name, "zero-output");
  EXPECT_EQ(findings[0].margin, 0.25);
  EXPECT_EQ(findings[0].mend, "inputs as in gate 1's draw 'outlier'");
}

TEST(PrecisionCounts, OnlyBeyondTheClassThatIsAskedFor) {
  EXPECT_TRUE(PrecisionCounts("", PrecisionClass::kBFloat16, true));
  EXPECT_TRUE(PrecisionCounts("tf32", PrecisionClass::kFloat32, false));
  EXPECT_FALSE(PrecisionCounts("tf32", PrecisionClass::kTf32, false));
  EXPECT_FALSE(PrecisionCounts("tf32", PrecisionClass::kBFloat16, false));
  EXPECT_TRUE(PrecisionCounts("bfloat16", PrecisionClass::kTf32, false));
  EXPECT_TRUE(PrecisionCounts("bfloat16", PrecisionClass::kExact, false));
  EXPECT_FALSE(PrecisionCounts("tf32", PrecisionClass::kFloat32, true));
  EXPECT_FALSE(PrecisionCounts("no such class", PrecisionClass::kFloat32, false));
}

TEST(MayBeEquivalent, OnlyWhatSaysNothingOfTheOutput) {
  EXPECT_TRUE(MayBeEquivalent(Mutant("operator", MutantResult::kSurvived)));
  for (const char* family : {"zeros", "constant", "mean", "batch", "copy", "input", "weight"})
    EXPECT_FALSE(MayBeEquivalent(Mutant(family, MutantResult::kSurvived))) << family;
}

TEST(ProblemAudit, TheWeakestIsTheKilledMutantNearestToItsBound) {
  ProblemAudit audit;
  EXPECT_EQ(audit.Weakest(), nullptr);
  audit.mutants = {Mutant("zeros", MutantResult::kKilled, 40),
                   Mutant("copy", MutantResult::kKilled, 3),
                   Mutant("batch", MutantResult::kSurvived, 0.1)};
  ASSERT_NE(audit.Weakest(), nullptr);
  EXPECT_EQ(audit.Weakest()->family, "copy");
  EXPECT_EQ(audit.Count(MutantResult::kKilled), 2);
}

}  // namespace
}  // namespace assay
