#include "cli/verdict_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>

#include "base/files.h"
#include "model/verdict_outline.h"
#include "run/rows.h"
#include "run/run_record.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytesMax = size_t{1} << 30;
constexpr int kDepthMax = 4;  // of folders in folders
constexpr size_t kReadersMax = 8;
constexpr size_t kFilesPerReaderMin = 64;  // fewer are read before a thread has begun
constexpr size_t kListedMax = 20;          // broken files in an error

bool HoldsVerdicts(const fs::path& path) {
  return path.extension() == ".json" || path.extension() == ".jsonl";
}

// A run's folder has other files of that kind beside its verdicts.
bool InRunFolder(const fs::path& path) {
  std::error_code unknown;
  return path.filename() != kRunRowsName &&
         fs::exists(path.parent_path() / kRunRecordName, unknown);
}

// The folder's verdict files, sorted: what a folder holds must not depend on its file system.
Result<std::vector<fs::path>> FilesUnder(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::recursive_directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code)) {
    if (entry.depth() >= kDepthMax) entry.disable_recursion_pending();
    std::error_code unknown;
    if (HoldsVerdicts(entry->path()) && !InRunFolder(entry->path()) &&
        entry->is_regular_file(unknown))
      files.push_back(entry->path());
  }
  if (code) return UsageError(fmt::format("cannot list {}: {}", folder.string(), code.message()));
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::vector<fs::path>> FilesOf(const std::vector<std::string>& paths) {
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    std::error_code code;
    if (!fs::exists(path, code))
      return UsageError(
          fmt::format("there is no {}: give files with verdicts, or folders of them", path));
    if (!fs::is_directory(path, code)) {
      files.push_back(path);
      continue;
    }
    ASSAY_ASSIGN_OR_RETURN(const std::vector<fs::path> found, FilesUnder(path));
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

// The verdict of a document; nullopt for a run's row on a candidate that nobody judged.
Result<std::optional<Verdict>> VerdictOf(std::string_view document) {
  if (!IsRunRow(document)) return VerdictOutlineFromJson(document);
  ASSAY_ASSIGN_OR_RETURN(RunRow row, RunRowFromJson(std::string(document)));
  if (row.verdict && row.verdict->problem.level == 0) row.verdict->problem.level = row.level;
  return std::move(row.verdict);
}

// A fault costs its file, or in a file of several verdicts that verdict.
VerdictFiles ReadOne(const fs::path& path) {
  VerdictFiles read;
  const auto text = ReadFile(path, kFileBytesMax);
  if (!text) {
    read.skipped.push_back(text.error().message);
    return read;
  }
  const bool lines = path.extension() == ".jsonl";
  const VerdictTexts texts = SplitVerdicts(*text, lines);
  for (size_t i = 0; i < texts.documents.size(); ++i) {
    auto verdict = VerdictOf(texts.documents[i]);
    if (verdict && *verdict)
      read.verdicts.push_back(std::move(**verdict));
    else if (verdict)
      continue;
    else if (texts.documents.size() == 1)
      read.skipped.push_back(fmt::format("{}: {}", path.string(), verdict.error().message));
    else
      read.skipped.push_back(
          fmt::format("{}, verdict {}: {}", path.string(), i + 1, verdict.error().message));
  }
  if (!texts.fault.empty())
    read.skipped.push_back(fmt::format("{}: {}", path.string(), texts.fault));
  return read;
}

std::vector<VerdictFiles> ReadAll(const std::vector<fs::path>& files) {
  std::vector<VerdictFiles> parts(files.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < files.size(); i = next++) parts[i] = ReadOne(files[i]);
  };
  const size_t helpers = std::min({kReadersMax, size_t{std::thread::hardware_concurrency()},
                                   files.size() / kFilesPerReaderMin});
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < helpers; ++i) threads.emplace_back(work);
  work();
  threads.clear();  // joins
  return parts;
}

Error BrokenError(const std::vector<std::string>& skipped) {
  const size_t listed = std::min(skipped.size(), kListedMax);
  std::string text = fmt::format(
      "cannot read these verdicts:\n  {}",
      fmt::join(skipped.begin(), skipped.begin() + static_cast<ptrdiff_t>(listed), "\n  "));
  if (skipped.size() > listed) text += fmt::format("\n  and {} more", skipped.size() - listed);
  return {ErrorKind::kUsage,
          text + "\nfix or remove them, or give --skip-broken to score the rest"};
}

}  // namespace

Result<VerdictFiles> ReadVerdictFiles(const std::vector<std::string>& paths, bool skip_broken) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<fs::path> files, FilesOf(paths));
  VerdictFiles all;
  for (VerdictFiles& part : ReadAll(files)) {
    std::move(part.verdicts.begin(), part.verdicts.end(), std::back_inserter(all.verdicts));
    std::move(part.skipped.begin(), part.skipped.end(), std::back_inserter(all.skipped));
  }
  if (!all.skipped.empty() && !skip_broken) return std::unexpected(BrokenError(all.skipped));
  return all;
}

}  // namespace assay
