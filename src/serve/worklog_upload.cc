#include "serve/worklog_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "report/text.h"
#include "worklog/markdown.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVersions = "versions/";

bool IsOfWorklog(std::string_view path) {
  for (const char* each : {kWordsFile, kFactsFile, kReferenceFile, kMarkdownFile, kPageFile})
    if (path == each) return true;
  for (const Section section : kAllSections)
    if (path == SectionFile(section)) return true;
  return path.starts_with(kVersions) && path.find('/', kVersions.size()) == std::string_view::npos;
}

// "match/" where all of the worklog lies in a folder of the tar; "": it does not.
std::string CommonFolder(std::span<const TarFile> files) {
  std::string folder;
  for (const TarFile& file : files) {
    if (file.path == kWordsFile) return {};
    const size_t slash = file.path.find('/');
    if (slash != std::string::npos && file.path.substr(slash + 1) == kWordsFile)
      folder = file.path.substr(0, slash + 1);
  }
  return folder;
}

}  // namespace

Result<std::vector<TarFile>> FilesOfWorklog(std::vector<TarFile> files) {
  const std::string folder = CommonFolder(files);
  std::vector<TarFile> kept;
  bool words = false, facts = false;
  for (TarFile& file : files) {
    if (!file.path.starts_with(folder)) continue;
    file.path.erase(0, folder.size());
    if (!IsOfWorklog(file.path)) continue;
    words |= file.path == kWordsFile;
    facts |= file.path == kFactsFile;
    kept.push_back(std::move(file));
  }
  if (!words || !facts)
    return UsageError(fmt::format(
        "there is no {} in the tar: send a worklog's folder, by assay worklog submit or packed by "
        "tar -cz -C FOLDER .",
        words ? kFactsFile : kWordsFile));
  return kept;
}

Result<std::vector<TarFile>> FilesOfWorklogFolder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    paths.push_back(at->path().filename().string());
  if (code) return UsageError(fmt::format("cannot read the folder {}", folder));
  for (fs::directory_iterator at(fs::path(folder) / "versions", code), end; !code && at != end;
       at.increment(code))
    paths.push_back(std::string(kVersions) + at->path().filename().string());
  std::sort(paths.begin(), paths.end());
  std::vector<TarFile> files;
  for (const std::string& path : paths) {
    if (!IsOfWorklog(path)) continue;
    const fs::path whole = fs::path(folder) / path;
    if (fs::is_symlink(whole, code))
      return UsageError(
          fmt::format("{} is a symbolic link: a worklog holds its own files", whole.string()));
    ASSAY_ASSIGN_OR_RETURN(std::string content, ReadFile(whole, kUploadLimits.bytes_max));
    files.push_back({path, std::move(content)});
  }
  return FilesOfWorklog(std::move(files));
}

Result<UploadedWorklog> ReadUploadedWorklog(std::span<const TarFile> files) {
  ASSAY_ASSIGN_OR_RETURN(const TemporaryFolder scratch, TemporaryFolder::Create());
  const std::string place = scratch.path().string() + "/";
  // The sender does not know the scratch folder.
  const auto named = [&](Error error) {
    for (size_t at; (at = error.message.find(place)) != std::string::npos;)
      error.message.erase(at, place.size());
    return std::unexpected(std::move(error));
  };
  for (const TarFile& file : files)
    ASSAY_RETURN_IF_ERROR(
        WriteFileAtomically(place + file.path, file.content, Durability::kFleeting));
  auto folder = WorklogFolder::Open(scratch.path().string());
  if (!folder) return named(folder.error());
  auto worklog = folder->Read();
  if (!worklog) return named(worklog.error());
  UploadedWorklog uploaded;
  uploaded.worklog = std::move(*worklog);
  for (const Fact& fact : folder->facts()) uploaded.facts.push_back(fact.record.hash);
  uploaded.rendered = RenderMarkdown(uploaded.worklog);
  return uploaded;
}

std::vector<Finding> CheckUploadedWorklog(const UploadedWorklog& uploaded,
                                          const UploadHistory& history) {
  std::vector<Finding> findings = CheckWorklog(uploaded.worklog, Witness(), uploaded.rendered);
  // The author's archive is not here, which goes without saying.
  std::erase_if(findings,
                [](const Finding& finding) { return finding.code == FindingCode::kNoArchive; });
  const std::set<std::string_view> has(uploaded.facts.begin(), uploaded.facts.end());
  const auto gone = std::count_if(history.facts.begin(), history.facts.end(),
                                  [&](const std::string& fact) { return !has.contains(fact); });
  if (gone > 0)
    findings.push_back(
        {FindingKind::kSuspicious,
         std::nullopt,
         fmt::format("{} that came with an earlier upload of this worklog: facts.jsonl was cut",
                     gone == 1 ? "a fact is missing" : fmt::format("{} facts are missing", gone)),
         "assay worklog check",
         {}});
  if (history.of_others)
    findings.push_back({FindingKind::kSuspicious,
                        std::nullopt,
                        "another account sent the same worklog, by its id",
                        "",
                        {}});
  return findings;
}

}  // namespace assay
