// Turns the user's choice into a problem file and the constants to change.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/files.h"
#include "problem/gradients.h"
#include "problem/nearest.h"
#include "problem/suite.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kProblemBytesMax = 1 << 20;
constexpr int kParentsMax = 32;

struct Found {
  std::string path;
  std::optional<SuiteProblem> described;  // by a suite
};

bool LooksLikeAPath(const std::string& problem) {
  return problem.find('/') != std::string::npos || problem.ends_with(".py");
}

// The nearest folder, from the file's own upwards, that holds a suite.toml.
std::optional<fs::path> NearestSuiteFolder(const fs::path& file) {
  std::error_code code;
  fs::path folder = fs::weakly_canonical(file, code).parent_path();
  for (int i = 0; !code && i < kParentsMax && !folder.empty(); ++i) {
    if (fs::is_regular_file(folder / "suite.toml", code)) return folder;
    if (folder == folder.parent_path()) break;
    folder = folder.parent_path();
    code.clear();
  }
  return std::nullopt;
}

Result<Found> FindByPath(const std::string& path) {
  Found found{path, std::nullopt};
  std::error_code code;
  // Whether the file can be read is told when it is read; a suite is looked for only beside one
  // that exists.
  if (!fs::is_regular_file(path, code)) return found;
  const auto folder = NearestSuiteFolder(path);
  if (!folder) return found;
  ASSAY_ASSIGN_OR_RETURN(const Suite suite, LoadSuite(folder->string()));
  for (const SuiteProblem& problem : suite.problems) {
    if (fs::equivalent(*folder / problem.file, path, code)) found.described = problem;
  }
  return found;
}

Result<Found> FindByName(const std::string& name, const std::vector<std::string>& suite_folders) {
  std::vector<std::string> known;
  for (const std::string& folder : suite_folders) {
    ASSAY_ASSIGN_OR_RETURN(const Suite suite, LoadSuite(folder));
    for (const SuiteProblem& problem : suite.problems) {
      if (problem.name == name) return Found{(fs::path(folder) / problem.file).string(), problem};
      known.push_back(problem.name);
    }
  }
  if (known.empty()) {
    return UsageError(fmt::format(
        "no problem '{}': no suite is installed here; give the path of a problem file", name));
  }
  return UsageError(fmt::format(
      "no problem '{}'{} Known: {}; or give the path of a problem file", name,
      NearestName(name, known).empty() ? "." : Suggestion(name, known), fmt::join(known, ", ")));
}

Result<void> ApplySize(const std::string& size, const Found& found, ProblemRequest& request) {
  if (size.empty()) return {};
  if (!found.described) {
    return UsageError(fmt::format(
        "{} has no named sizes, as no suite.toml describes it; use --set NAME=VALUE", found.path));
  }
  const auto& sizes = found.described->sizes;
  const auto chosen = sizes.find(size);
  if (chosen == sizes.end()) {
    std::vector<std::string> known;
    for (const auto& [name, constants] : sizes) known.push_back(name);
    if (known.empty())
      return UsageError(fmt::format("problem '{}' has no named sizes", found.described->name));
    return UsageError(fmt::format(
        "problem '{}' has no size '{}'{} It has: {}", found.described->name, size,
        NearestName(size, known).empty() ? "." : Suggestion(size, known), fmt::join(known, ", ")));
  }
  request.size = size;
  request.set = chosen->second;
  return {};
}

}  // namespace

std::optional<SuiteProblem> FindInSuite(const std::string& path) {
  const auto found = FindByPath(path);
  return found ? found->described : std::nullopt;
}

Result<ProblemRequest> ResolveProblem(const ProblemChoice& choice,
                                      const std::vector<std::string>& suite_folders) {
  std::error_code ignored;
  const bool is_path =
      LooksLikeAPath(choice.problem) || fs::is_regular_file(choice.problem, ignored);
  ASSAY_ASSIGN_OR_RETURN(const Found found, is_path ? FindByPath(choice.problem)
                                                    : FindByName(choice.problem, suite_folders));
  ProblemRequest request;
  request.path = found.path;
  request.name = fs::path(found.path).stem().string();
  ASSAY_ASSIGN_OR_RETURN(request.source, ReadFile(found.path, kProblemBytesMax));
  if (found.described) {
    request.name = found.described->name;
    request.level = found.described->level;
    request.precision = found.described->precision;
    request.tolerance = found.described->tolerance;
    request.flops = found.described->flops;
    request.bytes = found.described->bytes;
    request.operands = found.described->operands;
    request.skip_draws = found.described->skip_draws;
    request.special_values = found.described->special_values;
    request.weights = WeightsKindFromName(found.described->weights).value_or(WeightsKind::kVaried);
    request.ragged = found.described->ragged;
    request.allow_libraries = found.described->allow_libraries;
  }
  ASSAY_RETURN_IF_ERROR(ApplySize(choice.size, found, request));
  for (const auto& [name, value] : choice.set) request.set[name] = value;
  // Changed constants make it another size: the record then names each constant instead.
  if (!choice.set.empty()) request.size.clear();
  if (choice.gradients) AddGradients(&request);
  return request;
}

}  // namespace assay
