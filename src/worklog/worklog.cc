#include "worklog/worklog.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "report/text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kWordsBytesMax = 4 << 20;
constexpr size_t kProseBytesMax = 1 << 20;
constexpr size_t kFactsBytesMax = 256 << 20;

bool Exists(const std::string& path) {
  std::error_code code;
  return fs::exists(path, code);
}

Result<UniqueFd> Lock(const std::string& folder) {
  UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock) return UsageError(fmt::format("cannot open the folder {}", folder));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return UsageError(
        fmt::format("another assay worklog works on {}: try again when it has ended", folder));
  return lock;
}

// Reads a file that the folder itself holds: a link could bring any file into a report.
Result<std::string> ReadOwn(const fs::path& path, size_t size_bytes_max) {
  std::error_code code;
  for (const fs::path& each : {path, path.parent_path()})
    if (fs::is_symlink(each, code) && (each == path || each.filename() == "versions"))
      return UsageError(
          fmt::format("{} is a symbolic link: a worklog holds its own files", each.string()));
  return ReadFile(path, size_bytes_max);
}

Result<std::string> ReadProse(const std::string& path) {
  if (!Exists(path)) return std::string();
  ASSAY_ASSIGN_OR_RETURN(std::string text, ReadOwn(path, kProseBytesMax));
  if (!IsUtf8(text)) return UsageError(fmt::format("{} is not UTF-8: save it as UTF-8", path));
  if (const size_t line = ConflictLine(text); line > 0)
    return UsageError(fmt::format(
        "{} line {}: a merge left a conflict: choose the words, and remove the marks", path, line));
  return SectionProse(text);
}

}  // namespace

std::string_view Worklog::SourceOf(const VersionFact& version) const {
  const auto found = sources.find(version.said.file);
  return found == sources.end() ? std::string_view() : std::string_view(found->second);
}

Result<void> CheckSource(std::string_view source, const std::string& path) {
  if (source.size() > kWorklogSourceBytesMax)
    return UsageError(fmt::format("{} has {}; a worklog takes sources of {} at most", path,
                                  FormatBytes(static_cast<double>(source.size())),
                                  FormatBytes(static_cast<double>(kWorklogSourceBytesMax))));
  if (!IsUtf8(source))
    return UsageError(
        fmt::format("{} is not UTF-8, and a worklog is text: save it as UTF-8", path));
  return {};
}

Result<WorklogFolder> WorklogFolder::Make(const std::string& path) {
  if (Exists((fs::path(path) / kWordsFile).string()))
    return UsageError(fmt::format("{} has a worklog: go on with it, or name another folder", path));
  std::error_code code;
  fs::create_directories(path, code);
  if (code) return UsageError(fmt::format("cannot make the folder {}: {}", path, code.message()));
  ASSAY_ASSIGN_OR_RETURN(UniqueFd lock, Lock(path));
  return WorklogFolder(path, std::move(lock));
}

Result<WorklogFolder> WorklogFolder::Open(const std::string& path) {
  if (!Exists((fs::path(path) / kWordsFile).string()))
    return UsageError(fmt::format(
        "{} has no worklog: name its folder by --in FOLDER, or begin one by assay worklog init "
        "PROBLEM",
        path == "." ? "this folder" : path));
  ASSAY_ASSIGN_OR_RETURN(UniqueFd lock, Lock(path));
  WorklogFolder folder(path, std::move(lock));
  ASSAY_RETURN_IF_ERROR(folder.ReadFacts());
  return folder;
}

std::string WorklogFolder::PathOf(std::string_view file) const {
  return (fs::path(path_) / file).string();
}

Result<void> WorklogFolder::ReadFacts() {
  const std::string path = PathOf(kFactsFile);
  if (!Exists(path)) return {};  // the archive may have them
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadOwn(path, kFactsBytesMax));
  ASSAY_ASSIGN_OR_RETURN(facts_, ParseFacts(text, path));
  return {};
}

Result<Words> WorklogFolder::ReadWords() const {
  const std::string path = PathOf(kWordsFile);
  ASSAY_ASSIGN_OR_RETURN(const std::string words, ReadOwn(path, kWordsBytesMax));
  return ParseWords(words, path);
}

Result<std::string> WorklogFolder::ReadId() const {
  ASSAY_ASSIGN_OR_RETURN(const Words words, ReadWords());
  return words.id;
}

Result<Worklog> WorklogFolder::Read() const {
  Worklog worklog;
  ASSAY_ASSIGN_OR_RETURN(worklog.words, ReadWords());
  auto match = ReadMatch(facts_);
  if (!match)
    return UsageError(fmt::format(
        "{}: {}. assay worklog check fetches facts from the archive in which they were recorded "
        "(--archive FILE); git has earlier states",
        PathOf(kFactsFile), match.error().message));
  worklog.match = std::move(*match);
  if (worklog.match.begun.worklog != worklog.words.id)
    return UsageError(
        fmt::format("{} is of the worklog {}, {} of {}: they are of two matches, so bring one of "
                    "them back from git",
                    kWordsFile, worklog.words.id, kFactsFile, worklog.match.begun.worklog));
  for (const Section section : kAllSections) {
    ASSAY_ASSIGN_OR_RETURN(worklog.words.prose[static_cast<size_t>(section)],
                           ReadProse(PathOf(SectionFile(section))));
  }
  for (const VersionFact& version : worklog.match.versions)
    if (auto source = ReadOwn(PathOf(version.said.file), kWorklogSourceBytesMax))
      worklog.sources[version.said.file] = std::move(*source);
  auto reference = ReadOwn(PathOf(kReferenceFile), kWorklogSourceBytesMax);
  if (reference && Sha256Hex(*reference) == worklog.match.begun.reference_hash)
    worklog.reference = std::move(*reference);
  if (auto markdown = ReadOwn(PathOf(kMarkdownFile), kFactsBytesMax))
    worklog.markdown = std::move(*markdown);
  if (auto page = ReadOwn(PathOf(kPageFile), kFactsBytesMax)) worklog.page = std::move(*page);
  return worklog;
}

Result<void> WorklogFolder::AddFacts(std::span<const Fact> facts) {
  std::vector<Fact> all = facts_;
  all.insert(all.end(), facts.begin(), facts.end());
  std::stable_sort(all.begin(), all.end(), [](const Fact& a, const Fact& b) {
    return a.record.sequence < b.record.sequence;
  });
  std::string text;
  for (const Fact& fact : all) text += FactLine(fact) + "\n";
  ASSAY_RETURN_IF_ERROR(Write(kFactsFile, text));
  facts_ = std::move(all);
  return {};
}

Result<void> WorklogFolder::AddWords(std::string_view text) {
  const std::string path = PathOf(kWordsFile);
  std::string words;
  if (Exists(path)) {
    ASSAY_ASSIGN_OR_RETURN(words, ReadOwn(path, kWordsBytesMax));
    ASSAY_RETURN_IF_ERROR(ParseWords(words, path));
    if (!words.ends_with('\n')) words += '\n';
  }
  words += text;
  // The file must be readable before it takes the other's place.
  ASSAY_RETURN_IF_ERROR(ParseWords(words, path));
  return Write(kWordsFile, words);
}

Result<void> WorklogFolder::Write(std::string_view file, std::string_view content) {
  return WriteFileAtomically(PathOf(file), content);
}

}  // namespace assay
