#include "run/problem_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "problem/suite.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr int kLevels = 9;

// The number that begins a file's name, as in 23_Softmax.py; 0: none.
int64_t LeadingNumber(const std::string& stem) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
  return error == std::errc() && end != stem.data() + stem.size() && *end == '_' ? number : 0;
}

}  // namespace

void ProblemIndex::AddFiles(const std::string& folder, int level) {
  std::error_code code;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, code))
    if (entry.path().extension() == ".py") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    const Found found{file.string(), stem, level, LeadingNumber(stem)};
    by_name_.emplace(stem, found);
    if (level > 0 && found.number > 0) by_number_.emplace(std::pair(level, found.number), found);
  }
}

void ProblemIndex::AddLevels(const std::string& folder) {
  for (int level = 1; level <= kLevels; ++level)
    AddFiles((fs::path(folder) / fmt::format("level{}", level)).string(), level);
}

Result<ProblemIndex> ProblemIndex::Open(const std::string& folder,
                                        const std::vector<std::string>& suite_folders) {
  ProblemIndex index;
  index.place_ = folder.empty() ? "the installed suites" : folder;
  std::error_code code;
  if (!folder.empty() && !fs::is_directory(folder, code))
    return UsageError(fmt::format(
        "--problems {}: there is no such folder: give a checkout of KernelBench, or a folder of "
        "problems",
        folder));
  std::vector<std::string> suites = suite_folders;
  if (!folder.empty()) {
    suites.clear();
    if (fs::exists(fs::path(folder) / "suite.toml", code)) suites.push_back(folder);
    index.AddLevels(folder);
    index.AddLevels((fs::path(folder) / "KernelBench").string());
    if (suites.empty()) index.AddFiles(folder, 0);
  }
  for (const std::string& place : suites) {
    ASSAY_ASSIGN_OR_RETURN(const Suite suite, LoadSuite(place));
    for (const SuiteProblem& problem : suite.problems)
      index.by_name_.emplace(problem.name,
                             Found{(fs::path(place) / problem.file).string(), problem.name,
                                   problem.level, 0, problem.mechanism});
  }
  if (index.by_name_.empty())
    return UsageError(fmt::format(
        "--problems {}: it holds no problem: give a checkout of KernelBench (with level1/), or a "
        "folder of .py files",
        folder));
  return index;
}

std::optional<ProblemIndex::Found> ProblemIndex::ByNumber(int level, int64_t number) const {
  const auto found = by_number_.find({level, number});
  return found == by_number_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<ProblemIndex::Found> ProblemIndex::ByName(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace assay
