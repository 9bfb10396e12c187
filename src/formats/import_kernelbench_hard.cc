#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/files.h"
#include "formats/import_kinds.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = 4 << 20;
constexpr std::string_view kSolutionEnd = "_solution.py.txt";

// One answer to a problem.
struct Solution {
  std::string run;   // DATE_TIME_HARNESS_MODEL_PROBLEM
  std::string card;  // the folder of its card's runs; empty: those of the first card
  fs::path file;
};

// The dictionaries in the list SHAPES of shapes.py.
size_t CountShapes(const std::string& text) {
  const size_t begin = text.find("SHAPES");
  if (begin == std::string::npos) return 0;
  size_t count = 0;
  bool in_comment = false;
  for (const char c : std::string_view(text).substr(begin)) {
    if (c == '#' || c == '\n') in_comment = c == '#';
    count += c == '{' && !in_comment;
  }
  return count;
}

// The value of a key of the document itself, on one line: all that is wanted of an annotation.
std::string ScalarOf(const std::string& yaml, const std::string& key) {
  std::istringstream lines(yaml);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key + ":")) continue;
    std::string value = line.substr(key.size() + 1);
    value.erase(std::min(value.find(" #"), value.size()));
    const auto is_margin = [](char c) { return c == ' ' || c == '"' || c == '\'' || c == '\r'; };
    while (!value.empty() && is_margin(value.back())) value.pop_back();
    value.erase(value.begin(), std::find_if_not(value.begin(), value.end(), is_margin));
    return value;
  }
  return "";
}

std::vector<fs::path> EntriesOf(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code))
    entries.push_back(entry->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

// The published answers (public/runs of the checkout, and its folders, one a card), and those of a
// harness that ran here (outputs/runs/RUN/solution.py of the benchmark).
std::vector<Solution> SolutionsOf(const fs::path& benchmark) {
  std::vector<Solution> solutions;
  std::error_code code;
  const auto add_file = [&](const fs::path& file, const std::string& card) {
    const std::string name = file.filename().string();
    if (!name.ends_with(kSolutionEnd)) return;
    solutions.push_back({name.substr(0, name.size() - kSolutionEnd.size()), card, file});
  };
  for (const fs::path& entry : EntriesOf(benchmark / "../../public/runs")) {
    if (!fs::is_directory(entry, code)) add_file(entry, "");
    for (const fs::path& file : EntriesOf(entry)) add_file(file, entry.filename().string());
  }
  for (const fs::path& entry : EntriesOf(benchmark / "outputs/runs"))
    if (fs::exists(entry / "solution.py", code))
      solutions.push_back({entry.filename().string(), "", entry / "solution.py"});
  return solutions;
}

class Importer {
 public:
  Importer(const ImportRequest& request, fs::path benchmark)
      : request_(request), benchmark_(std::move(benchmark)), solutions_(SolutionsOf(benchmark_)) {}

  Result<void> AddProblem(const fs::path& folder) {
    const std::string name = folder.filename().string();
    ASSAY_ASSIGN_OR_RETURN(const std::string reference,
                           ReadFile(folder / "reference.py", kFileBytesMax));
    ASSAY_ASSIGN_OR_RETURN(const std::string shapes, ReadFile(folder / "shapes.py", kFileBytesMax));
    const size_t count = CountShapes(shapes);
    if (count == 0)
      return UsageError(
          fmt::format("{} has no list SHAPES of shapes", (folder / "shapes.py").string()));
    std::vector<size_t> problems;
    for (size_t shape = 0; shape < count; ++shape)
      problems.push_back(imported_.AddProblem(
          fmt::format("{}_shape{}", name, shape + 1),
          fmt::format("{}\n\n{}\n\nglobals().update(SHAPES[{}])\n", reference, shapes, shape)));
    size_t answers = 0;
    for (const Solution& solution : solutions_) {
      if (!solution.run.ends_with("_" + name)) continue;
      ++answers;
      ASSAY_RETURN_IF_ERROR(AddSolution(name, problems, solution));
    }
    if (answers == 0) imported_.left_out.push_back(name + ": there is no solution for it");
    return {};
  }

  Imported Finish() { return std::move(imported_); }

 private:
  Result<void> AddSolution(const std::string& name, const std::vector<size_t>& problems,
                           const Solution& solution) {
    ASSAY_ASSIGN_OR_RETURN(const std::string source, ReadFile(solution.file, kFileBytesMax));
    if (source.find("class Model") == std::string::npos) {
      imported_.left_out.push_back(solution.run + ": it has no class Model");
      return {};
    }
    Json origin = {{"format", "kernelbench-hard"},
                   {"run", solution.run},
                   {"problem", name},
                   {"card", solution.card.empty() ? Json() : Json(solution.card)}};
    const auto annotation =
        ReadFile(benchmark_ / "results/annotations" / (solution.run + ".yaml"), kFileBytesMax);
    const std::string label = annotation ? ScalarOf(*annotation, "verdict") : "";
    origin["label"] = label.empty() ? Json() : Json(label);
    for (size_t shape = 0; shape < problems.size(); ++shape) {
      if (request_.limit > 0 && imported_.candidates.size() >= request_.limit) return {};
      origin["shape"] = shape + 1;
      origin["claimed_speedup"] = nullptr;
      imported_.AddCandidate(problems[shape], fmt::format("{}_shape{}", solution.run, shape + 1),
                             source + "\n\nModelNew = Model\n", origin.dump());
    }
    return {};
  }

  const ImportRequest& request_;
  fs::path benchmark_;
  std::vector<Solution> solutions_;
  Imported imported_;
};

}  // namespace

Result<Imported> ImportKernelBenchHard(const ImportRequest& request) {
  std::error_code code;
  const fs::path root = fs::weakly_canonical(fs::path(request.paths.front()), code);
  std::vector<fs::path> problems;
  for (const fs::path& entry : EntriesOf(root))
    if (fs::exists(entry / "reference.py", code) && fs::exists(entry / "shapes.py", code))
      problems.push_back(entry);
  if (problems.empty())
    return UsageError(fmt::format(
        "{} has no NAME/reference.py with a shapes.py: name a folder of problems, such as "
        "benchmarks/hard/problems-h100 of a checkout",
        root.string()));
  Importer importer(request, root.parent_path());
  for (const fs::path& problem : problems) ASSAY_RETURN_IF_ERROR(importer.AddProblem(problem));
  return importer.Finish();
}

}  // namespace assay
