#include "cli/audit_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/files.h"
#include "problem/suite.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kProblemBytesMax = 1 << 20;
constexpr size_t kProblemsMax = 10000;

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (auto entry = fs::directory_iterator(folder, code); !code && entry != fs::end(entry);
       entry.increment(code))
    if (entry->path().extension() == ".py" && entry->is_regular_file(code) &&
        files.size() < kProblemsMax)
      files.push_back(entry->path());
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return NaturallyBefore(a.filename().string(), b.filename().string());
  });
  return files;
}

// The level folders of a checkout of KernelBench, or of its own folder of them.
std::vector<fs::path> LevelFolders(const fs::path& folder) {
  for (const fs::path& root : {folder, folder / "KernelBench"}) {
    std::vector<fs::path> levels;
    std::error_code code;
    for (int level = 1; level <= 9; ++level) {
      const fs::path path = root / fmt::format("level{}", level);
      if (fs::is_directory(path, code)) levels.push_back(path);
    }
    if (!levels.empty()) return levels;
  }
  return {};
}

// Returns what a name stands for: itself, or the problems of a folder.
Result<std::vector<std::string>> Expanded(const std::string& name) {
  std::error_code code;
  fs::path folder(name);
  if (folder.filename() == "suite.toml")
    folder = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, code)) return std::vector<std::string>{name};
  std::vector<std::string> paths;
  if (fs::is_regular_file(folder / "suite.toml", code)) {
    ASSAY_ASSIGN_OR_RETURN(const Suite suite, LoadSuite(folder.string()));
    for (const SuiteProblem& problem : suite.problems)
      paths.push_back((folder / problem.file).string());
  } else {
    std::vector<fs::path> folders = LevelFolders(folder);
    if (folders.empty()) folders.push_back(folder);
    for (const fs::path& level : folders)
      for (const fs::path& file : FilesIn(level)) {
        const auto source = ReadFile(file, kProblemBytesMax);
        if (source && source->find("class Model") != std::string::npos)
          paths.push_back(file.string());
      }
  }
  if (paths.empty())
    return UsageError(
        fmt::format("{} holds no problems: name a .py file with a class Model, or a folder that "
                    "has such files, a suite.toml or level1",
                    name));
  return paths;
}

int LevelOf(const fs::path& path) {
  const std::string folder = path.parent_path().filename().string();
  return folder.size() == 6 && folder.starts_with("level") && IsDigit(folder[5]) ? folder[5] - '0'
                                                                                 : 0;
}

}  // namespace

bool NaturallyBefore(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!IsDigit(a[i]) || !IsDigit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    const auto number = [](const std::string& text, size_t* at) {
      const size_t begin = std::min(text.find_first_not_of('0', *at), text.size());
      *at = begin;
      while (*at < text.size() && IsDigit(text[*at])) ++*at;
      return text.substr(begin, *at - begin);
    };
    const std::string left = number(a, &i), right = number(b, &j);
    if (left.size() != right.size()) return left.size() < right.size();
    if (left != right) return left < right;
  }
  return a.size() - i < b.size() - j;
}

bool AssignsConstant(const std::string& source, const std::string& name) {
  for (size_t at = 0; at < source.size();) {
    const size_t end = std::min(source.find('\n', at), source.size());
    const std::string line = source.substr(at, end - at);
    at = end + 1;
    const size_t last = line.rfind('=');
    if (line.empty() || !(IsWord(line[0]) || line[0] == '(') || last == std::string::npos) continue;
    const std::string targets = line.substr(0, last);
    for (size_t found = targets.find(name); found != std::string::npos;
         found = targets.find(name, found + 1)) {
      const size_t after = found + name.size();
      if ((found == 0 || !IsWord(targets[found - 1])) &&
          (after == targets.size() || !IsWord(targets[after])))
        return true;
    }
  }
  return false;
}

Result<std::vector<AskedAudit>> AskedProblems(const std::vector<std::string>& names,
                                              const std::string& size,
                                              const std::vector<std::string>& set,
                                              const std::vector<std::string>& suite_folders) {
  std::map<std::string, std::string> settings;
  for (const std::string& text : set) {
    ASSAY_ASSIGN_OR_RETURN(auto setting, ParseSetting(text));
    settings[setting.first] = setting.second;
  }
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<std::string> expanded, Expanded(name));
    paths.insert(paths.end(), expanded.begin(), expanded.end());
  }
  std::vector<AskedAudit> asked;
  std::set<std::string> used;
  for (const std::string& path : paths) {
    ProblemChoice choice{path, size, settings};
    if (paths.size() > 1) {
      const auto plain = ResolveProblem({path, "", {}}, suite_folders);
      std::erase_if(choice.set, [&](const auto& item) {
        return plain && !AssignsConstant(plain->source, item.first);
      });
      for (const auto& [name, value] : choice.set) used.insert(name);
    }
    auto problem = ResolveProblem(choice, suite_folders);
    if (!problem && paths.size() == 1) return std::unexpected(problem.error());
    AskedAudit one;
    if (problem) {
      one.problem = std::move(*problem);
      if (one.problem.level == 0) one.problem.level = LevelOf(one.problem.path);
    } else {
      one.problem.name = fs::path(path).stem().string();
      one.problem.path = path;
      one.error = problem.error().message;
    }
    asked.push_back(std::move(one));
  }
  if (paths.size() > 1)
    for (const auto& [name, value] : settings)
      if (!used.contains(name))
        return UsageError(fmt::format("--set {}={}: none of the {} problems has a constant {}",
                                      name, value, paths.size(), name));
  return asked;
}

}  // namespace assay
