// CUDA-L1, KernelBook and the AI CUDA Engineer's archive: tables whose rows have a reference and a
// candidate as text.
#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <regex>

#include "formats/foreign_rows.h"
#include "formats/import_kinds.h"
#include "formats/python_text.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

bool IsFull(const Imported& imported, const ImportRequest& request) {
  return request.limit > 0 && imported.candidates.size() >= request.limit;
}

// The members of `row` that a reader of the results may want, under their own names.
Json Chosen(const Json& row, std::initializer_list<const char*> names) {
  Json chosen = Json::object();
  for (const char* name : names)
    if (const auto found = row.find(name); found != row.end()) chosen[name] = *found;
  return chosen;
}

bool HasClass(const std::string& source, const std::string& name) {
  return std::regex_search(source, std::regex("(^|\n)class\\s+" + name + "\\s*[(:]"));
}

bool IsIdentifier(const std::string& text) {
  return std::regex_match(text, std::regex("[A-Za-z_][A-Za-z0-9_]*"));
}

// Calls `add` with each row and its number, from 1, until as many are imported as were asked for.
Result<Imported> ImportEach(const ImportRequest& request,
                            const std::function<void(const Json&, int64_t, Imported&)>& add) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<Json> rows,
                         ReadForeignRows(request.paths.front(), request.read));
  Imported imported;
  int64_t number = 0;
  for (const Json& row : rows) {
    if (IsFull(imported, request)) break;
    add(row, ++number, imported);
  }
  return imported;
}

}  // namespace

Result<Imported> ImportCudaL1(const ImportRequest& request) {
  return ImportEach(request, [](const Json& row, int64_t number, Imported& imported) {
    const std::string level = TextOf(row, "level_id"), task = TextOf(row, "task_id");
    const std::string reference = TextOf(row, "ref_code"), candidate = TextOf(row, "custom_code");
    const std::string name = fmt::format("level{}_{}", level, task);
    if (task.empty() || reference.empty()) {
      imported.left_out.push_back(fmt::format("row {} has no task_id or no ref_code", number));
      return;
    }
    if (candidate.empty() || candidate == "None") {
      imported.left_out.push_back(fmt::format("{}: there is no custom_code", name));
      return;
    }
    Json origin = {{"format", "cuda-l1"}};
    origin.update(
        Chosen(row, {"level_id", "task_id", "score_torch_compile_default",
                     "score_torch_compile_reduce_overhead", "score_cuda_graph", "score_cudnn"}));
    origin["claimed_speedup"] = NumberOf(row, row.contains("score") ? "score" : "score_default");
    const size_t problem = imported.AddProblem(name, reference);
    imported.AddCandidate(problem, name, candidate, origin.dump());
  });
}

Result<Imported> ImportKernelBook(const ImportRequest& request) {
  return ImportEach(request, [](const Json& row, int64_t number, Imported& imported) {
    std::string entry = TextOf(row, "entry_point");
    if (entry.empty()) entry = TextOf(row, "module_name");
    std::string reference = TextOf(row, "python_code"), candidate = TextOf(row, "triton_code");
    if (!IsIdentifier(entry) || reference.empty() || candidate.empty()) {
      imported.left_out.push_back(
          fmt::format("row {} has no entry_point, no python_code or no triton_code", number));
      return;
    }
    std::string found;
    for (const std::string& name : {std::string("ModelNew"), entry + "New", entry})
      if (found.empty() && HasClass(candidate, name)) found = name;
    if (found.empty()) {
      imported.left_out.push_back(fmt::format(
          "row {}: triton_code has no class ModelNew, {}New or {}", number, entry, entry));
      return;
    }
    if (entry != "Model") reference += fmt::format("\n\nModel = {}\n", entry);
    if (found != "ModelNew") candidate += fmt::format("\n\nModelNew = {}\n", found);
    Json origin = {{"format", "kernelbook"}};
    origin.update(Chosen(
        row, {"entry_point", "module_name", "repo_name", "repo_link", "licenses", "sha", "uuid"}));
    // Rows of assay mine have KernelBench's class, and the problem's name beside it.
    const std::string module = TextOf(row, "module_name");
    const std::string name = entry == "Model" && !module.empty() ? module : entry;
    const size_t problem = imported.AddProblem(name, reference);
    imported.AddCandidate(problem, name, candidate, origin.dump());
  });
}

namespace {

// The functional form calls its function through an argument of forward, so that an extension with
// the same signature can take its place.
std::string ExtensionCandidate(const std::string& functional, const std::string& source) {
  return fmt::format(R"({}


{}

class ModelNew(Model):
    def forward(self, *inputs):
        return super().forward(*inputs, fn=extension.forward)
)",
                     functional, PythonExtension(source, IsCudaSource(source)));
}

}  // namespace

Result<Imported> ImportAiCudaEngineer(const ImportRequest& request) {
  return ImportEach(request, [](const Json& row, int64_t number, Imported& imported) {
    const std::string operation = TextOf(row, "Op_Name"), source = TextOf(row, "CUDA_Code");
    const std::string module = TextOf(row, "PyTorch_Code_Module");
    const std::string functional = TextOf(row, "PyTorch_Code_Functional");
    if (source.empty() || module.empty() || functional.empty()) {
      imported.left_out.push_back(fmt::format(
          "row {} has no CUDA_Code, PyTorch_Code_Module or PyTorch_Code_Functional", number));
      return;
    }
    if (functional.find("fn=") == std::string::npos &&
        functional.find("fn:") == std::string::npos) {
      imported.left_out.push_back(
          fmt::format("row {}: forward of PyTorch_Code_Functional takes no fn", number));
      return;
    }
    Json origin = {{"format", "ai-cuda-engineer"}};
    origin.update(
        Chosen(row, {"Op_Name", "Level_ID", "Task_ID", "Kernel_Name", "CUDA_Runtime",
                     "PyTorch_Native_Runtime", "PyTorch_Compile_Runtime", "Correct", "Max_Diff"}));
    origin["claimed_speedup"] = NumberOf(row, "CUDA_Speedup_Native");
    // The operation's name begins with the task's number.
    const std::string name = fmt::format("level{}_{}", TextOf(row, "Level_ID"), operation);
    const size_t problem = imported.AddProblem(name, module);
    const std::string kernel = TextOf(row, "Kernel_Name");
    imported.AddCandidate(problem, kernel.empty() ? name : name + "_" + kernel,
                          ExtensionCandidate(functional, source), origin.dump());
  });
}

}  // namespace assay
