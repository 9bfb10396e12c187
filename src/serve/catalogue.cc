#include "serve/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/hash.h"
#include "problem/nearest.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytesMax = size_t{1} << 20;

}  // namespace

Result<Catalogue> Catalogue::Load(const std::vector<std::string>& suite_folders,
                                  const std::string& own_folder) {
  std::vector<std::pair<std::string, bool>> folders;
  std::error_code code;
  if (fs::exists(own_folder + "/suite.toml", code)) folders.emplace_back(own_folder, true);
  for (const std::string& folder : suite_folders)
    if (fs::exists(folder + "/suite.toml", code)) folders.emplace_back(folder, false);
  Catalogue catalogue;
  for (const auto& [folder, is_own] : folders) {
    ASSAY_ASSIGN_OR_RETURN(const Suite suite, LoadSuite(folder));
    for (const SuiteProblem& facts : suite.problems) {
      const bool known = std::ranges::any_of(
          catalogue.problems_, [&](const auto& each) { return each.facts.name == facts.name; });
      if (known) continue;
      OfferedProblem problem{facts, folder + "/" + facts.file, "", is_own};
      ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(problem.path, kFileBytesMax));
      problem.hash = Sha256Hex(text);
      catalogue.problems_.push_back(std::move(problem));
    }
  }
  return catalogue;
}

Result<const OfferedProblem*> Catalogue::Find(const std::string& name) const {
  std::vector<std::string> names;
  for (const OfferedProblem& problem : problems_) {
    if (problem.facts.name == name) return &problem;
    names.push_back(problem.facts.name);
  }
  return UsageError(fmt::format("there is no problem {}{}", name, Suggestion(name, names)));
}

Result<std::string> Catalogue::Text(const OfferedProblem& problem) const {
  ASSAY_ASSIGN_OR_RETURN(std::string text, ReadFile(problem.path, kFileBytesMax));
  if (Sha256Hex(text) != problem.hash)
    return UsageError(
        fmt::format("{} was changed while the server runs: start it again", problem.facts.name));
  return text;
}

Result<void> Catalogue::Check(const OfferedProblem& problem, const std::string& size,
                              const std::map<std::string, std::string>& set) const {
  if (!size.empty() && !problem.facts.sizes.contains(size)) {
    std::string known;
    for (const auto& [name, values] : problem.facts.sizes)
      known += (known.empty() ? "" : ", ") + name;
    return UsageError(fmt::format("{} has no size {}; known: {}", problem.facts.name, size,
                                  known.empty() ? "none" : known));
  }
  for (const auto& [name, value] : set) {
    const auto setting = ParseSetting(name + "=" + value);
    if (!setting) return std::unexpected(setting.error());
  }
  return {};
}

}  // namespace assay
