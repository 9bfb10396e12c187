#include "model/kinds.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Kinds, NamesLeadBackToThem) {
  for (const auto kind : {WeightsKind::kVaried, WeightsKind::kConstant, WeightsKind::kConstructed})
    EXPECT_EQ(WeightsKindFromName(WeightsKindName(kind)), kind);
  for (const auto form : {CandidateForm::kNative, CandidateForm::kPython, CandidateForm::kDevice})
    EXPECT_EQ(CandidateFormFromName(CandidateFormName(form)), form);
  for (const auto language : {Language::kCpp, Language::kC, Language::kCuda, Language::kPython})
    EXPECT_EQ(LanguageFromName(LanguageName(language)), language);
  EXPECT_EQ(WeightsKindFromName(""), std::nullopt);
  EXPECT_EQ(CandidateFormFromName("perl"), std::nullopt);
  EXPECT_EQ(LanguageFromName("Python"), std::nullopt);
}

}  // namespace
}  // namespace assay
