#include "run/plan.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "problem/gradients.h"
#include "run/problem_index.h"
#include "session/asked_terms.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kManifestBytesMax = size_t{64} << 20;
constexpr std::string_view kEndings[] = {".py", ".cu", ".cpp", ".cc", ".cxx", ".c"};

// A candidate as it is named, before its files are read.
struct Asked {
  explicit Asked(std::string path = "") : file(std::move(path)) {}

  std::string file;
  std::string problem;  // a path or a name; empty: by the file's name
  std::string size;
  ProblemSettings set;
  std::optional<int64_t> sample;
  std::string where;   // "runs.jsonl line 3"; empty: the file's own name
  bool found = false;  // in a folder, not named
};

bool MayBeCandidate(const fs::path& path) {
  const std::string ending = path.extension().string();
  return IsNamedAsAnswer(path) ||
         std::find(std::begin(kEndings), std::end(kEndings), ending) != std::end(kEndings);
}

// The stem without a number at its end: ("softmax", 3) of "softmax_3"; nullopt: it ends in none.
std::optional<std::pair<std::string, int64_t>> WithoutNumber(const std::string& stem) {
  const size_t cut = stem.find_last_of("_-.");
  if (cut == std::string::npos || cut == 0 || cut + 1 == stem.size()) return std::nullopt;
  std::string_view digits = std::string_view(stem).substr(cut + 1);
  if (digits.starts_with("sample")) digits.remove_prefix(6);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return std::pair(stem.substr(0, cut), number);
}

class Planner {
 public:
  Planner(const PlanRequest& request, ProblemIndex index,
          std::map<std::string, ProblemSettings> sizes)
      : request_(request), index_(std::move(index)), sizes_(std::move(sizes)) {}

  void Add(const Asked& asked) {
    if (asked.found && IsNamedAsAnswer(asked.file) && !IsAnswerToProblem(asked.file)) return;
    const std::string where = asked.where.empty() ? asked.file : asked.where;
    const auto added = TryAdd(asked);
    if (!added) plan_.troubles.push_back(fmt::format("{}: {}", where, added.error().message));
  }

  RunPlan Finish() {
    NumberSamples();
    RefuseDoubles();
    std::stable_sort(plan_.items.begin(), plan_.items.end(),
                     [&](const RunItem& one, const RunItem& other) {
                       const RunProblem& a = plan_.problems[one.problem];
                       const RunProblem& b = plan_.problems[other.problem];
                       return std::tuple(a.level, a.number, a.name, one.problem, one.sample) <
                              std::tuple(b.level, b.number, b.name, other.problem, other.sample);
                     });
    return std::move(plan_);
  }

 private:
  // By its own name alone, and its code: a folder of kernels may hold texts about them.
  bool IsAnswerToProblem(const fs::path& file) const {
    if (ParseSampleName(file.filename().string())) return true;
    const std::string stem = file.stem().string();
    const auto numbered = WithoutNumber(stem);
    const bool named = index_.ByName(stem) || (numbered && index_.ByName(numbered->first));
    return named && ReadCandidate(file.string());
  }

  Result<void> TryAdd(const Asked& asked) {
    ASSAY_ASSIGN_OR_RETURN(CandidateSource source, ReadCandidate(asked.file));
    if (request_.gradients) {
      ASSAY_ASSIGN_OR_RETURN(source, WithGradients(std::move(source)));
    }
    const auto sample = ParseSampleName(fs::path(asked.file).filename().string());
    RunItem item;
    ProblemIndex::Found found;
    if (!asked.problem.empty()) {
      ASSAY_ASSIGN_OR_RETURN(found, Named(asked.problem));
      item.sample = asked.sample.value_or(-1);
    } else if (sample) {
      const auto known = index_.ByNumber(sample->level, sample->problem);
      if (!known)
        return UsageError(fmt::format("{} has no problem {} of level {}", index_.place(),
                                      sample->problem, sample->level));
      found = *known;
      item.sample = sample->sample;
    } else {
      ASSAY_ASSIGN_OR_RETURN(found, ByFileName(asked.file, &item.sample));
    }
    ASSAY_ASSIGN_OR_RETURN(item.problem, ProblemOf(asked, found));
    item.source = std::move(source);
    plan_.items.push_back(std::move(item));
    return {};
  }

  Result<ProblemIndex::Found> Named(const std::string& problem) const {
    if (const auto known = index_.ByName(problem)) return *known;
    std::error_code code;
    if (fs::is_regular_file(problem, code))
      return ProblemIndex::Found{problem, fs::path(problem).stem().string(), 0, 0};
    return UsageError(
        fmt::format("no problem '{}' in {}, and no such file", problem, index_.place()));
  }

  // By "softmax.cu", "softmax_3.cu" or "softmax/fused.cu".
  Result<ProblemIndex::Found> ByFileName(const std::string& file, int64_t* sample) const {
    const fs::path path(file);
    const std::string stem = path.stem().string();
    *sample = -1;
    if (const auto found = index_.ByName(stem)) return *found;
    if (const auto numbered = WithoutNumber(stem))
      if (const auto found = index_.ByName(numbered->first)) {
        *sample = numbered->second;
        return *found;
      }
    if (const auto found = index_.ByName(path.parent_path().filename().string())) return *found;
    return UsageError(fmt::format(
        "its name says no problem of {}: name it PROBLEM{} or PROBLEM_SAMPLE{}, or write a "
        "manifest (docs/run.md)",
        index_.place(), path.extension().string(), path.extension().string()));
  }

  Result<size_t> ProblemOf(const Asked& asked, const ProblemIndex::Found& found) {
    RunProblem problem;
    problem.name = found.name;
    problem.level = found.level;
    problem.number = found.number;
    problem.mechanism = found.mechanism;
    problem.choice.problem = found.path;
    problem.choice.gradients = request_.gradients;
    problem.choice.size = asked.size.empty() ? request_.size : asked.size;
    const auto sizes = sizes_.find(fmt::format("level{}/{}", found.level, found.name));
    if (sizes != sizes_.end()) problem.choice.set = sizes->second;
    for (const auto& [name, value] : asked.set) problem.choice.set.insert_or_assign(name, value);
    for (size_t i = 0; i < plan_.problems.size(); ++i) {
      const ProblemChoice& known = plan_.problems[i].choice;
      if (known.problem == problem.choice.problem && known.size == problem.choice.size &&
          known.set == problem.choice.set)
        return i;
    }
    ASSAY_ASSIGN_OR_RETURN(const ProblemRequest resolved,
                           ResolveProblem(problem.choice, request_.suite_folders));
    problem.hash = Sha256Hex(resolved.source);
    if (request_.gradients) problem.name += kGradientsSuffix;
    plan_.problems.push_back(std::move(problem));
    return plan_.problems.size() - 1;
  }

  // Gives candidates without a number the free ones, in the order in which they came.
  void NumberSamples() {
    std::map<size_t, std::set<int64_t>> used;
    for (const RunItem& item : plan_.items) used[item.problem].insert(item.sample);
    for (RunItem& item : plan_.items) {
      if (item.sample >= 0) continue;
      item.sample = 0;
      while (!used[item.problem].insert(item.sample).second) ++item.sample;
    }
  }

  // Two files that claim to be one sample: nobody can say which of them is meant.
  void RefuseDoubles() {
    std::map<std::pair<size_t, int64_t>, std::vector<std::string>> files;
    for (const RunItem& item : plan_.items)
      files[{item.problem, item.sample}].push_back(item.source.path);
    for (const auto& [key, names] : files)
      if (names.size() > 1)
        plan_.troubles.push_back(fmt::format(
            "{} and {} are both sample {} of {}: remove or rename one; neither is judged", names[0],
            names[1], key.second, plan_.problems[key.first].name));
    std::erase_if(plan_.items, [&](const RunItem& item) {
      return files[{item.problem, item.sample}].size() > 1;
    });
  }

  const PlanRequest& request_;
  const ProblemIndex index_;
  const std::map<std::string, ProblemSettings> sizes_;
  RunPlan plan_;
};

Result<std::vector<Asked>> FromFolder(const std::string& folder, const std::string& only) {
  std::vector<Asked> found;
  std::error_code code;
  for (fs::recursive_directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code)) {
    std::error_code unknown;
    if (entry.depth() >= 1) entry.disable_recursion_pending();
    const bool is_folder =
        entry->is_directory(unknown) && ParseSampleName(entry->path().filename().string());
    if (is_folder) entry.disable_recursion_pending();
    if (is_folder || (entry->is_regular_file(unknown) && MayBeCandidate(entry->path())))
      found.emplace_back(entry->path().string()).found = true;
  }
  if (code) return UsageError(fmt::format("cannot list {}: {}", folder, code.message()));
  // Code that was taken out of an answer stands for it.
  std::set<fs::path> code_stems;
  for (const Asked& asked : found)
    if (!IsNamedAsAnswer(asked.file)) code_stems.insert(fs::path(asked.file).replace_extension());
  std::erase_if(found, [&](const Asked& asked) {
    return IsNamedAsAnswer(asked.file) &&
           code_stems.contains(fs::path(asked.file).replace_extension());
  });
  const bool samples = std::any_of(found.begin(), found.end(), [](const Asked& asked) {
    return ParseSampleName(fs::path(asked.file).filename().string()).has_value();
  });
  // A KernelBench run folder may hold other files beside its samples.
  std::erase_if(found, [&](const Asked& asked) {
    const std::string name = fs::path(asked.file).filename().string();
    if (samples && !ParseSampleName(name)) return true;
    return !only.empty() && ::fnmatch(only.c_str(), name.c_str(), 0) != 0;
  });
  std::sort(found.begin(), found.end(),
            [](const Asked& one, const Asked& other) { return one.file < other.file; });
  return found;
}

constexpr const char* kLineOfManifest =
    R"(each line is an object, for example {"candidate": "mine.cu", "problem": "softmax"})";

std::string WhyNoField(const std::string& key) {
  if (key == "candidate" || key == "problem" || key == "size")
    return fmt::format("the value of \"{}\" is no text", key);
  if (key == "sample") return "the value of \"sample\" is no whole number from 0 on";
  if (key == "set")
    return R"(the value of "set" is no object of constants, for example {"ROWS": 64})";
  return fmt::format(
      "\"{}\" is no field of a manifest: those are candidate, problem, sample, size and set", key);
}

// One line of a manifest.
Result<Asked> FromLine(const std::string& line, const fs::path& folder) {
  const Json json = Json::parse(line, nullptr, false);
  if (json.is_discarded()) return UsageError(std::string("this is not JSON; ") + kLineOfManifest);
  if (!json.is_object())
    return UsageError(std::string("this is JSON, but no object; ") + kLineOfManifest);
  Asked asked;
  for (const auto& [key, value] : json.items()) {
    if ((key == "candidate" || key == "problem" || key == "size") && value.is_string()) {
      (key == "candidate" ? asked.file
       : key == "problem" ? asked.problem
                          : asked.size) = value.get<std::string>();
    } else if (key == "sample" && value.is_number_unsigned()) {
      asked.sample = value.get<int64_t>();
    } else if (key == "set" && value.is_object()) {
      for (const auto& [name, constant] : value.items()) {
        const std::string text =
            constant.is_string() ? constant.get<std::string>() : constant.dump();
        ASSAY_ASSIGN_OR_RETURN(auto setting, ParseSetting(name + "=" + text));
        asked.set.insert(std::move(setting));
      }
    } else {
      return UsageError(WhyNoField(key));
    }
  }
  if (asked.file.empty())
    return UsageError("it names no candidate: give its file or folder as \"candidate\"");
  asked.file = (folder / asked.file).lexically_normal().string();
  if (asked.problem.ends_with(".py"))
    asked.problem = (folder / asked.problem).lexically_normal().string();
  return asked;
}

// A list, or an object that is set over lines: no line of it is an object.
bool IsOneDocument(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_array() || (json.is_object() && text.find('\n', text.find('{')) < text.rfind('}'));
}

Result<std::vector<Asked>> FromManifest(const std::string& path,
                                        std::vector<std::string>* troubles) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kManifestBytesMax));
  if (IsOneDocument(text))
    return UsageError(
        fmt::format("{} is one JSON document; in a manifest {}", path, kLineOfManifest));
  std::vector<Asked> found;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    ++number;
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = fmt::format("{} line {}", path, number);
    auto asked = FromLine(line, fs::path(path).parent_path());
    if (!asked) {
      troubles->push_back(fmt::format("{}: {}", where, asked.error().message));
      continue;
    }
    asked->where = where;
    found.push_back(std::move(*asked));
  }
  return found;
}

// The candidates that the request's paths name.
Result<std::vector<Asked>> FindCandidates(const PlanRequest& request,
                                          std::vector<std::string>* troubles) {
  std::vector<Asked> asked;
  for (const std::string& path : request.paths) {
    std::error_code code;
    if (!fs::exists(path, code))
      return UsageError(fmt::format(
          "there is no {}: give a folder of candidates, candidates, or a manifest (.jsonl)", path));
    std::vector<Asked> found{Asked(path)};
    if (fs::is_directory(path, code)) {
      ASSAY_ASSIGN_OR_RETURN(found, FromFolder(path, request.only));
    } else if (path.ends_with(".json")) {
      return UsageError(
          fmt::format("{} is no candidate, and no manifest: that has the ending .jsonl, and {}",
                      path, kLineOfManifest));
    } else if (path.ends_with(".jsonl")) {
      ASSAY_ASSIGN_OR_RETURN(found, FromManifest(path, troubles));
    }
    std::move(found.begin(), found.end(), std::back_inserter(asked));
  }
  if (asked.empty() && troubles->empty())
    return UsageError(fmt::format(
        "no candidate in {}{}: a KernelBench run folder has level_1_problem_23_sample_0_kernel.py, "
        "others PROBLEM.cu, PROBLEM.py or PROBLEM.cpp",
        request.paths.front(),
        request.only.empty() ? "" : fmt::format(" that fits --only {}", request.only)));
  return asked;
}

}  // namespace

std::optional<SampleName> ParseSampleName(std::string_view file_name) {
  SampleName name;
  const char* at = file_name.data();
  const char* const end = at + file_name.size();
  const auto word = [&](std::string_view text) {
    if (!std::string_view(at, end).starts_with(text)) return false;
    at += text.size();
    return true;
  };
  const auto number = [&](auto* value) {
    const auto [stop, error] = std::from_chars(at, end, *value);
    if (error != std::errc() || *value < 0) return false;
    at = stop;
    return true;
  };
  if (!word("level_") || !number(&name.level) || !word("_problem_") || !number(&name.problem) ||
      !word("_sample_") || !number(&name.sample) || !word("_kernel") || (at != end && *at != '.'))
    return std::nullopt;
  return name;
}

Result<RunPlan> MakeRunPlan(const PlanRequest& request) {
  std::vector<std::string> troubles;
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Asked> asked, FindCandidates(request, &troubles));
  const bool samples = std::any_of(asked.begin(), asked.end(), [](const Asked& one) {
    return one.problem.empty() && ParseSampleName(fs::path(one.file).filename().string());
  });
  if (samples && request.problems.empty())
    return UsageError(
        "these are answers to KernelBench's problems: name its checkout with --problems DIR");
  ASSAY_ASSIGN_OR_RETURN(ProblemIndex index,
                         ProblemIndex::Open(request.problems, request.suite_folders));
  std::map<std::string, ProblemSettings> sizes;
  if (!request.sizes.empty()) {
    ASSAY_ASSIGN_OR_RETURN(sizes, ReadSizesFile(request.sizes));
  }
  Planner planner(request, std::move(index), std::move(sizes));
  for (const Asked& one : asked) planner.Add(one);
  RunPlan plan = planner.Finish();
  plan.troubles.insert(plan.troubles.begin(), troubles.begin(), troubles.end());
  return plan;
}

}  // namespace assay
