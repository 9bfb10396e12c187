#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/flashinfer.h"
#include "formats/foreign_rows.h"
#include "formats/import_kinds.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = 16 << 20;
constexpr size_t kUuidDigits = 8;

std::vector<fs::path> FilesBelow(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> found;
  std::error_code code;
  for (fs::recursive_directory_iterator entry(folder, code), end; !code && entry != end;
       entry.increment(code))
    if (entry->path().extension() == ending) found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

Result<Json> ReadObject(const fs::path& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kFileBytesMax));
  Json object = Json::parse(text, nullptr, false);
  if (!object.is_object()) return UsageError(fmt::format("{} is no JSON object", path.string()));
  return object;
}

// A definition with all that belongs to it.
struct Task {
  Json definition;
  std::vector<Json> workloads, solutions;
};

class Importer {
 public:
  Importer(const ImportRequest& request, std::string layout)
      : request_(request), layout_(std::move(layout)), root_(request.paths.front()) {}

  void Add(const Task& task) {
    const std::string name = task.definition.value("name", "");
    if (task.workloads.empty()) imported_.left_out.push_back(name + ": it has no workload");
    if (task.solutions.empty()) imported_.left_out.push_back(name + ": it has no solution");
    for (size_t i = 0; i < task.workloads.size(); ++i) {
      const Json& workload = task.workloads[i];
      const std::string uuid = workload.value("uuid", std::to_string(i));
      auto text = FlashInferProblem(task.definition, workload, root_);
      if (!text) {
        imported_.left_out.push_back(
            fmt::format("{}, workload {}: {}", name, uuid, text.error().message));
        continue;
      }
      const std::string problem_name = fmt::format("{}_{}", name, uuid.substr(0, kUuidDigits));
      const size_t problem = imported_.AddProblem(problem_name, *text);
      for (const Json& solution : task.solutions) AddSolution(task, solution, workload, problem);
    }
  }

  Imported Finish() { return std::move(imported_); }

 private:
  void AddSolution(const Task& task, const Json& solution, const Json& workload, size_t problem) {
    if (request_.limit > 0 && imported_.candidates.size() >= request_.limit) return;
    const std::string name = solution.value("name", "solution");
    auto text = FlashInferCandidate(task.definition, solution);
    if (!text) {
      const std::string line = fmt::format("solution {}: {}", name, text.error().message);
      if (imported_.left_out.empty() || imported_.left_out.back() != line)
        imported_.left_out.push_back(line);
      return;
    }
    const Json origin = {{"format", "flashinfer"},
                         {"layout", layout_},
                         {"definition", task.definition.value("name", "")},
                         {"op_type", task.definition.value("op_type", "unknown")},
                         {"solution", name},
                         {"author", solution.value("author", "unknown")},
                         {"workload", workload},
                         {"claimed_speedup", nullptr}};
    imported_.AddCandidate(
        problem, fmt::format("{}_{}", name, workload.value("uuid", "").substr(0, kUuidDigits)),
        *text, origin.dump());
  }

  const ImportRequest& request_;
  const std::string layout_;
  const fs::path root_;
  Imported imported_;
};

// FlashInfer-Trace: definitions/, workloads/ and solutions/ below one root.
Result<Imported> ImportTree(const ImportRequest& request) {
  const fs::path root(request.paths.front());
  std::map<std::string, Task> tasks;
  for (const fs::path& path : FilesBelow(root / "definitions", ".json")) {
    ASSAY_ASSIGN_OR_RETURN(Json definition, ReadObject(path));
    const std::string name = definition.value("name", path.stem().string());
    if (!definition.contains("op_type"))
      definition["op_type"] = path.parent_path().filename().string();
    tasks[name].definition = std::move(definition);
  }
  for (const fs::path& path : FilesBelow(root / "workloads", ".jsonl")) {
    ASSAY_ASSIGN_OR_RETURN(const std::vector<Json> lines, ReadForeignRows(path, request.read));
    for (const Json& line : lines) {
      const auto task = tasks.find(line.value("definition", path.stem().string()));
      if (task != tasks.end() && line.contains("workload"))
        task->second.workloads.push_back(line["workload"]);
    }
  }
  for (const fs::path& path : FilesBelow(root / "solutions", ".json")) {
    ASSAY_ASSIGN_OR_RETURN(Json solution, ReadObject(path));
    const auto task = tasks.find(solution.value("definition", ""));
    if (task != tasks.end()) task->second.solutions.push_back(std::move(solution));
  }
  Importer importer(request, "flashinfer-trace");
  for (const auto& [name, task] : tasks) importer.Add(task);
  return importer.Finish();
}

// SOL-ExecBench: a folder with definition.json, workload.jsonl, reference.py and solution*.json.
Result<Imported> ImportFolder(const ImportRequest& request) {
  const fs::path root(request.paths.front());
  Task task;
  ASSAY_ASSIGN_OR_RETURN(task.definition, ReadObject(root / "definition.json"));
  std::error_code code;
  if (!task.definition.contains("reference") && fs::exists(root / "reference.py", code)) {
    ASSAY_ASSIGN_OR_RETURN(task.definition["reference"],
                           ReadFile(root / "reference.py", kFileBytesMax));
  }
  ASSAY_ASSIGN_OR_RETURN(task.workloads, ReadForeignRows(root / "workload.jsonl", request.read));
  for (const fs::path& path : FilesBelow(root, ".json")) {
    if (!path.filename().string().starts_with("solution")) continue;
    ASSAY_ASSIGN_OR_RETURN(Json solution, ReadObject(path));
    task.solutions.push_back(std::move(solution));
  }
  Importer importer(request, "sol-execbench");
  importer.Add(task);
  return importer.Finish();
}

}  // namespace

Result<Imported> ImportFlashInfer(const ImportRequest& request) {
  const fs::path root(request.paths.front());
  std::error_code code;
  if (fs::exists(root / "definition.json", code)) return ImportFolder(request);
  if (fs::is_directory(root / "definitions", code)) return ImportTree(request);
  return UsageError(fmt::format("{} has neither definitions/ nor definition.json", root.string()));
}

}  // namespace assay
