#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "answer/code_of_answer.h"
#include "base/files.h"
#include "base/hash.h"
#include "toolchain/build.h"
#include "toolchain/device_program.h"
#include "toolchain/packed_folder.h"

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

// What the ending of a candidate's name says; nullptr: it is no candidate's.
const Suffix* SuffixOf(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  for (const Suffix& known : kSuffixes)
    if (known.suffix == suffix) return &known;
  return nullptr;
}

const Suffix* SuffixFor(std::string_view language) {
  return std::ranges::find(kSuffixes, language, &Suffix::language);
}

// The form by a text's marks, where the ending of its name says nothing; nullptr: it has none.
const Suffix* SuffixOfMarks(std::string_view source) {
  switch (MarkedForm(source)) {
    case CodeForm::kPython:
      return SuffixFor("python");
    case CodeForm::kDevice:
      return SuffixFor("cuda");
    case CodeForm::kNative:
      return SuffixFor(source.contains("ASSAY_KERNEL_C")                         ? "c"
                       : source.contains("__global__") || source.contains("<<<") ? "cuda"
                                                                                 : "cpp");
    case CodeForm::kAny:
      break;
  }
  return nullptr;
}

Error NoCandidate(const std::string& path) {
  return {ErrorKind::kUsage,
          fmt::format("{} is not a candidate: its name must end in .cpp, .cc, .cxx (C++), .c (C), "
                      ".cu (CUDA) or .py (class ModelNew), or in .txt or .md if it is a model's "
                      "answer; several files are judged as their folder",
                      path)};
}

// The forms that an answer in a file of this name may have, in the order in which they are tried.
std::vector<CodeForm> FormsFor(const Suffix* suffix) {
  if (suffix == nullptr) return {CodeForm::kAny};
  if (suffix->form == CandidateForm::kPython) return {CodeForm::kPython};
  if (suffix->form == CandidateForm::kDevice) return {CodeForm::kDevice, CodeForm::kNative};
  return {CodeForm::kNative};
}

Result<CandidateSource> ReadFolder(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  ASSAY_ASSIGN_OR_RETURN(std::string packed, PackFolder(path));
  ASSAY_ASSIGN_OR_RETURN(CandidateSource candidate, CandidateFromText(path, std::move(packed)));
  const auto folder = UnpackFolder(candidate.content);
  candidate.note = fmt::format("a folder of {} file{}; the entry is {}", folder->files.size(),
                               folder->files.size() == 1 ? "" : "s", folder->entry);
  return candidate;
}

std::string NoteOf(const AnsweredCode& code) {
  return fmt::format("{} lines, taken out of a model's answer{}",
                     std::ranges::count(code.source, '\n'),
                     code.is_cut_off ? ", whose block of code has no end" : "");
}

}  // namespace

bool IsNamedAsAnswer(const std::string& path) {
  const std::string suffix = std::filesystem::path(path).extension().string();
  return suffix == ".txt" || suffix == ".md";
}

Result<CandidateSource> CandidateFromText(const std::string& path, std::string content) {
  const auto folder = UnpackFolder(content);
  if (!folder && IsPackedFolder(content))
    return UsageError(
        fmt::format("{} is a packed folder that was changed or cut off: give the "
                    "folder itself",
                    path));
  const Suffix* found = folder                  ? SuffixOf(std::string(folder->entry))
                        : IsNamedAsAnswer(path) ? SuffixOfMarks(content)
                                                : SuffixOf(path);
  if (found == nullptr) return std::unexpected(NoCandidate(path));
  const std::string_view entry = folder ? folder->EntryText() : std::string_view(content);
  const bool launches = found->form == CandidateForm::kDevice && IsDeviceProgram(entry);
  if (found->form == CandidateForm::kDevice && !launches && !entry.contains("ASSAY_KERNEL") &&
      !entry.contains("assay_kernel_v1"))
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

Result<CandidateSource> CandidateFromAnswer(const std::string& path, std::string text) {
  if (IsPackedFolder(text)) return CandidateFromText(path, std::move(text));
  const Suffix* suffix = SuffixOf(path);
  if (suffix == nullptr && !IsNamedAsAnswer(path)) return std::unexpected(NoCandidate(path));
  const Suffix* marked = suffix != nullptr ? suffix : SuffixOfMarks(text);
  const bool python = marked != nullptr && marked->form == CandidateForm::kPython;
  if (marked != nullptr && !IsAnswer(text, python ? CodeForm::kPython : CodeForm::kNative))
    return CandidateFromText(path, std::move(text));
  std::string lacks;
  for (const CodeForm form : FormsFor(suffix)) {
    const auto code = CodeOfAnswer(text, form);
    if (!code) {
      lacks = code.error();
      continue;
    }
    ASSAY_ASSIGN_OR_RETURN(CandidateSource candidate, CandidateFromText(path, code->source));
    candidate.note = NoteOf(*code);
    return candidate;
  }
  if (suffix == nullptr) return UsageError(fmt::format("{}: {}", path, lacks));
  ASSAY_ASSIGN_OR_RETURN(CandidateSource candidate, CandidateFromText(path, std::move(text)));
  candidate.note = "it reads like a model's answer. " + lacks;
  return candidate;
}

Result<CandidateSource> ReadCandidate(const std::string& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) return ReadFolder(path);
  const bool is_named = SuffixOf(path) != nullptr || IsNamedAsAnswer(path);
  if (!is_named && !std::filesystem::is_regular_file(path, code))
    return std::unexpected(NoCandidate(path));
  ASSAY_ASSIGN_OR_RETURN(std::string content, ReadFile(path, kCandidateBytesMax));
  if (!is_named && !IsPackedFolder(content)) return std::unexpected(NoCandidate(path));
  return CandidateFromAnswer(path, std::move(content));
}

}  // namespace assay
