#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/files.h"
#include "formats/import_kinds.h"
#include "formats/python_text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = 4 << 20;
constexpr const char* kSubmission = "@SUBMISSION@";

struct Task {
  std::string name;                          // the folder's
  std::map<std::string, std::string> files;  // name -> content, without the submission
  std::string submission = "submission.py";  // the name under which it is imported
  Json cases = Json::array();
};

// "size: 1024; seed: 4242", as results name a case.
std::string CaseText(const Json& one) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : one.items())
    parts.push_back(
        fmt::format("{}: {}", key, value.is_string() ? value.get<std::string>() : value.dump()));
  return fmt::format("{}", fmt::join(parts, "; "));
}

Result<Task> ReadTask(const fs::path& folder, const ForeignReader& read) {
  const fs::path path = folder / "task.yml";
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  ASSAY_ASSIGN_OR_RETURN(const std::string line, read("yaml", text));
  const Json yaml = Json::parse(line, nullptr, false);
  if (!yaml.is_object()) return UsageError(fmt::format("{} is no mapping", path.string()));
  const std::string language = yaml.value("lang", Json("py")) == "py" ? "py" : "other";
  if (language != "py")
    return UsageError(fmt::format(
        "{}: only tasks with lang: py are imported; a task in C++ brings a program of its own",
        path.string()));
  std::error_code code;
  Task task;
  task.name = fs::weakly_canonical(folder, code).filename().string();
  for (const Json& file : yaml.value("files", Json::array())) {
    if (!file.is_object() || !file.contains("name") || !file.contains("source")) continue;
    const std::string name = file["name"].get<std::string>();
    const std::string source = file["source"].get<std::string>();
    if (source == kSubmission) {
      task.submission = name;
    } else if (name.ends_with(".py") && name != "eval.py") {
      if (fs::path(name).is_absolute() || name.find("..") != std::string::npos)
        return UsageError(fmt::format("{}: the name {} leaves the folder", path.string(), name));
      ASSAY_ASSIGN_OR_RETURN(task.files[name], ReadFile(folder / source, kFileBytesMax));
    }
  }
  if (!task.files.contains("reference.py"))
    return UsageError(fmt::format("{} lists no reference.py among its files", path.string()));
  task.cases = yaml.value("benchmarks", Json::array());
  if (task.cases.empty()) task.cases = yaml.value("tests", Json::array());
  if (!task.cases.is_array() || task.cases.empty())
    return UsageError(fmt::format("{} has neither benchmarks nor tests", path.string()));
  return task;
}

// How a task's checker becomes the problem's own check.
enum class Checker {
  kComparison,  // with ref_kernel, as a utility of the task's makes it: as the judge does by itself
  kMayCompare,  // with ref_kernel, in code of its own
  kAccepts,     // it looks at the results themselves
};

// The lines of the function, up to the next line at the margin.
std::string FunctionText(const std::string& source, const std::string& name) {
  const size_t begin = ("\n" + source).find("\ndef " + name + "(");
  if (begin == std::string::npos) return {};
  size_t end = source.find('\n', begin);
  while (end != std::string::npos && end + 1 < source.size() &&
         (source[end + 1] == ' ' || source[end + 1] == '\t' || source[end + 1] == '\n' ||
          source[end + 1] == ')' || source[end + 1] == '#'))
    end = source.find('\n', end + 1);
  return source.substr(begin, end == std::string::npos ? end : end - begin);
}

Checker CheckerOf(const Task& task) {
  const std::string text = FunctionText(task.files.at("reference.py"), "check_implementation");
  if (text.empty()) return Checker::kComparison;
  return text.contains("ref_kernel") ? Checker::kMayCompare : Checker::kAccepts;
}

// A checker says (right, words), or words alone where something is wrong.
constexpr const char* kCheck = R"(

RESULTS = []  # the reference's first results: one tensor, or several


def check(inputs, outputs):
    data = inputs[0]
    if not RESULTS:
        RESULTS.append(ref_kernel(copy.deepcopy(data)))
    single = torch.is_tensor(RESULTS[0])
    found = check_implementation(data, outputs[0] if single else tuple(outputs[: len(RESULTS[0])]))
    right, words = found if isinstance(found, tuple) else (not found, found)
    return None if right else str(words) or "the task's checker refuses it"
)";

// The seed of a case would give the same values in every draw: the judge's takes its place.
std::string ProblemText(const Task& task, const Json& one) {
  Json arguments = one;
  const bool seeded = arguments.erase("seed") > 0;
  const bool checks = CheckerOf(task) == Checker::kAccepts;
  return fmt::format(R"({}
{}import random

import torch
import torch.nn as nn
from reference import {}generate_input, ref_kernel

CASE = {}


class Model(nn.Module):
    def forward(self, data):
        return ref_kernel(data)


def get_inputs():
    return [generate_input(**CASE{})]


def get_init_inputs():
    return []
{})",
                     PythonFiles(task.files), checks ? "import copy\n" : "",
                     checks ? "check_implementation, " : "", PythonLiteral(arguments),
                     seeded ? ", seed=random.randrange(1, 2**31)" : "", checks ? kCheck : "");
}

std::string CandidateText(const Task& task, const std::string& submission) {
  std::map<std::string, std::string> files = task.files;
  files.erase("reference.py");
  files[task.submission] = submission;
  return fmt::format(R"({}
import torch
import torch.nn as nn
from {} import custom_kernel


class ModelNew(nn.Module):
    def forward(self, data):
        return custom_kernel(data)
)",
                     PythonFiles(files), fs::path(task.submission).stem().string());
}

// The words behind "#!POPCORN leaderboard" or "gpu" at the submission's top.
Json Directives(const std::string& text) {
  Json found = Json::object();
  static const std::regex kLine(R"((?:^|\n)(?:#|//)!POPCORN\s+(leaderboard|gpus?)\s+([^\n]*))");
  for (std::sregex_iterator at(text.begin(), text.end(), kLine), end; at != end; ++at)
    found[(*at)[1].str()] = (*at)[2].str();
  return found;
}

// Submissions: the files that are named, and those of named folders; without any, submission.py of
// the task's folder and submissions/ there.
std::vector<fs::path> Submissions(const ImportRequest& request) {
  std::vector<fs::path> places(request.paths.begin() + 1, request.paths.end());
  const fs::path folder(request.paths.front());
  if (places.empty()) places = {folder / "submission.py", folder / "submissions"};
  std::vector<fs::path> found;
  std::error_code code;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place, code)) found.push_back(place);
    if (!fs::is_directory(place, code)) continue;
    std::vector<fs::path> inside;
    for (const auto& entry : fs::directory_iterator(place, code))
      if (entry.path().extension() == ".py") inside.push_back(entry.path());
    std::sort(inside.begin(), inside.end());
    found.insert(found.end(), inside.begin(), inside.end());
  }
  return found;
}

}  // namespace

Result<Imported> ImportPopcorn(const ImportRequest& request) {
  ASSAY_ASSIGN_OR_RETURN(const Task task, ReadTask(request.paths.front(), request.read));
  Imported imported;
  if (CheckerOf(task) == Checker::kMayCompare)
    imported.notes.push_back(fmt::format(
        "{}: check_implementation is not taken over, since it calls ref_kernel: Assay compares "
        "with "
        "the reference by itself. If it accepts other answers, too, give the problems a check "
        "(docs/problems.md)",
        task.name));
  for (const fs::path& path : Submissions(request)) {
    ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
    if (text.find("custom_kernel") == std::string::npos) {
      imported.left_out.push_back(path.string() + ": it defines no custom_kernel");
      continue;
    }
    for (size_t i = 0; i < task.cases.size(); ++i) {
      if (request.limit > 0 && imported.candidates.size() >= request.limit) return imported;
      const Json& one = task.cases[i];
      const std::string name = fmt::format("{}_{}", task.name, i);
      const size_t problem = imported.AddProblem(name, ProblemText(task, one));
      const Json origin = {{"format", "popcorn"},
                           {"leaderboard", task.name},
                           {"submission", path.string()},
                           {"directives", Directives(text)},
                           {"case", i},
                           {"spec", CaseText(one)},
                           {"claimed_speedup", nullptr}};
      imported.AddCandidate(problem, fmt::format("{}_{}", path.stem().string(), i),
                            CandidateText(task, text), origin.dump());
    }
  }
  if (imported.candidates.empty() && imported.left_out.empty())
    imported.left_out.push_back(
        "there is no submission: name files or folders of them behind the task's folder");
  return imported;
}

}  // namespace assay
