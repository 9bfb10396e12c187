#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "base/hash.h"
#include "toolchain/build.h"
#include "toolchain/device_program.h"

namespace assay {
namespace {

struct Suffix {
  std::string_view suffix;
  CandidateForm form;
  std::string_view language;
};

constexpr Suffix kSuffixes[] = {
    {".cpp", CandidateForm::kNative, "cpp"},   {".cc", CandidateForm::kNative, "cpp"},
    {".cxx", CandidateForm::kNative, "cpp"},   {".c", CandidateForm::kNative, "c"},
    {".py", CandidateForm::kPython, "python"}, {".cu", CandidateForm::kDevice, "cuda"},
};

}  // namespace

namespace {

// What the ending of a candidate's name says; nullptr: it is no candidate's.
const Suffix* SuffixOf(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  for (const Suffix& known : kSuffixes)
    if (known.suffix == suffix) return &known;
  return nullptr;
}

}  // namespace

Result<CandidateSource> CandidateFromText(const std::string& path, std::string content) {
  const Suffix* found = SuffixOf(path);
  if (found == nullptr) {
    return UsageError(fmt::format(
        "{} is not a candidate: its name must end in .cpp, .cc, .cxx (C++), .c (C), .cu (CUDA) "
        "or .py (class ModelNew)",
        path));
  }
  const bool launches = found->form == CandidateForm::kDevice && IsDeviceProgram(content);
  if (found->form == CandidateForm::kDevice && !launches &&
      content.find("ASSAY_KERNEL") == std::string::npos &&
      content.find("assay_kernel_v1") == std::string::npos)
    return UsageError(fmt::format(
        "{} has no '//! launch' line and no ASSAY_KERNEL: a candidate in CUDA either says how its "
        "kernels are launched, or launches them itself",
        path));
  CandidateSource candidate;
  candidate.path = path;
  candidate.hash = Sha256Hex(content);
  candidate.content = std::move(content);
  candidate.form =
      found->form == CandidateForm::kDevice && !launches ? CandidateForm::kNative : found->form;
  candidate.language = found->language;
  return candidate;
}

Result<CandidateSource> ReadCandidate(const std::string& path) {
  if (SuffixOf(path) == nullptr) return CandidateFromText(path, "");
  ASSAY_ASSIGN_OR_RETURN(std::string content, ReadFile(path, kCandidateBytesMax));
  return CandidateFromText(path, std::move(content));
}

}  // namespace assay
