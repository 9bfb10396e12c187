#include "model/kinds.h"

#include "model/named.h"

namespace assay {
namespace {

constexpr std::array<Named<WeightsKind>, 3> kWeightsKinds{{
    {WeightsKind::kVaried, "varied"},
    {WeightsKind::kConstant, "constant"},
    {WeightsKind::kConstructed, "constructed"},
}};
constexpr std::array<Named<CandidateForm>, 3> kForms{{
    {CandidateForm::kNative, "native"},
    {CandidateForm::kPython, "python"},
    {CandidateForm::kDevice, "device"},
}};
constexpr std::array<Named<Language>, 4> kLanguages{{
    {Language::kCpp, "cpp"},
    {Language::kC, "c"},
    {Language::kCuda, "cuda"},
    {Language::kPython, "python"},
}};

}  // namespace

std::string_view WeightsKindName(WeightsKind kind) { return NameIn(kWeightsKinds, kind); }
std::optional<WeightsKind> WeightsKindFromName(std::string_view name) {
  return CodeIn(kWeightsKinds, name);
}

std::string_view CandidateFormName(CandidateForm form) { return NameIn(kForms, form); }
std::optional<CandidateForm> CandidateFormFromName(std::string_view name) {
  return CodeIn(kForms, name);
}

std::string_view LanguageName(Language language) { return NameIn(kLanguages, language); }
std::optional<Language> LanguageFromName(std::string_view name) { return CodeIn(kLanguages, name); }

}  // namespace assay
