#include "cli/worklog_match.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "cli/recorder.h"
#include "report/text.h"
#include "worklog/markdown.h"

namespace assay {

constexpr size_t kMarksBytesMax = 1 << 20;

std::string ArchiveOf(const WorklogPlace& place) {
  return place.archive.empty() ? DefaultArchive() : place.archive;
}

std::string PlaceWords(const WorklogPlace& place) {
  std::string words;
  if (place.folder != ".") words += " --in " + ShellQuoted(place.folder);
  if (!place.archive.empty()) words += " --archive " + ShellQuoted(StoreName(place.archive));
  return words;
}

Result<OpenedMatch> OpenToLook(const WorklogPlace& place) {
  ASSAY_ASSIGN_OR_RETURN(WorklogFolder folder, WorklogFolder::Open(place.folder));
  const std::string path = ArchiveOf(place);
  OpenedMatch opened{nullptr, std::move(folder), {}, {}, 0};
  opened.witness.archive = path;
  if (StoreMayExist(path)) {
    ASSAY_ASSIGN_OR_RETURN(opened.store, OpenStore(path, StoreAccess::kRead));
    ASSAY_ASSIGN_OR_RETURN(const std::string id, opened.folder.ReadId());
    ASSAY_ASSIGN_OR_RETURN(opened.witness,
                           AskArchive(*opened.store, path, opened.folder.facts(), id));
    // An archive that knows nothing of the match is another one.
    if (!opened.folder.facts().empty() &&
        opened.witness.unknown.size() == opened.folder.facts().size() &&
        opened.witness.missing.empty()) {
      opened.witness.asked = false;
      opened.witness.unknown.clear();
    }
    if (!opened.witness.missing.empty()) {
      ASSAY_RETURN_IF_ERROR(opened.folder.AddFacts(opened.witness.missing));
      opened.fetched = opened.witness.missing.size();
    }
  }
  ASSAY_ASSIGN_OR_RETURN(opened.worklog, opened.folder.Read());
  if (opened.witness.asked) {
    const MatchBegun& begun = opened.worklog.match.begun;
    const auto& facts = opened.folder.facts();
    ASSAY_ASSIGN_OR_RETURN(opened.witness.outside,
                           VerdictsOn(*opened.store, begun.problem, begun.reference_hash,
                                      facts.back().record.sequence));
  }
  return opened;
}

Result<OpenedMatch> OpenToRecord(const WorklogPlace& place) {
  ASSAY_ASSIGN_OR_RETURN(OpenedMatch opened, OpenToLook(place));
  if (!opened.witness.asked || !opened.witness.unknown.empty())
    return UsageError(
        fmt::format("the archive {} has not all facts of this match: it was moved or truncated, or "
                    "is another one; name the archive of the match by --archive FILE",
                    StoreName(opened.witness.archive)));
  ASSAY_ASSIGN_OR_RETURN(opened.store, OpenStore(opened.witness.archive, StoreAccess::kWrite));
  return opened;
}

std::vector<Finding> CheckOpened(const OpenedMatch& opened) {
  std::vector<Finding> findings =
      CheckWorklog(opened.worklog, opened.witness, RenderMarkdown(opened.worklog));
  if (opened.fetched > 0)
    findings.push_back({FindingKind::kChanged, std::nullopt,
                        fmt::format("facts.jsonl lacked {} of the archive's: they are back",
                                    Counted(static_cast<long long>(opened.fetched), "fact")),
                        ""});
  return findings;
}

Result<Marks> ReadMarks(const OpenedMatch& opened) {
  const std::string path = opened.folder.PathOf(kMarksFile);
  if (std::error_code code; !std::filesystem::exists(path, code)) return Marks();
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMarksBytesMax));
  ASSAY_ASSIGN_OR_RETURN(Marks marks, ParseMarks(text, path));
  if (!marks.worklog.empty() && marks.worklog != opened.worklog.words.id)
    return UsageError(
        fmt::format("{} is of the worklog {}: remove it, and mark anew", path, marks.worklog));
  return marks;
}

}  // namespace assay
