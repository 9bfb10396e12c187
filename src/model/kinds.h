// Kinds that records name: how weights are treated, what a candidate is. In JSON they are names.
#pragma once

#include <optional>
#include <string_view>

namespace assay {

// How weights are treated.
enum class WeightsKind {
  kVaried,       // each call has values of its own
  kConstant,     // random ones, the same in all calls
  kConstructed,  // the constructor's, in all calls
};
std::string_view WeightsKindName(WeightsKind kind);  // "varied"...
std::optional<WeightsKind> WeightsKindFromName(std::string_view name);

// kDevice: CUDA device code; Assay itself launches its kernels, by the `//! launch` lines.
enum class CandidateForm { kNative, kPython, kDevice };
std::string_view CandidateFormName(CandidateForm form);  // "native"...
std::optional<CandidateForm> CandidateFormFromName(std::string_view name);

// The language of a candidate.
enum class Language { kCpp, kC, kCuda, kPython };
std::string_view LanguageName(Language language);  // "cpp"...
std::optional<Language> LanguageFromName(std::string_view name);

}  // namespace assay
