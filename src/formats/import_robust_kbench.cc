#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/import_kinds.h"
#include "formats/python_text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = 4 << 20;

// The list under `key`; one empty object if it is missing or empty.
Json Configs(const Json& config, const std::string& key) {
  const auto found = config.find(key);
  if (found == config.end() || !found->is_array() || found->empty())
    return Json::array({Json::object()});
  return *found;
}

Json Joined(const Json& one, const Json& other) {
  Json joined = one.is_object() ? one : Json::object();
  if (other.is_object()) joined.update(other);
  return joined;
}

// The file's own functions, called with one of its configurations.
std::string ProblemText(const std::string& functions, const Json& init, const Json& inputs) {
  return fmt::format(R"({}

INIT = {}
INPUTS = {}
inputs_of = get_inputs


def get_init_inputs():
    return [[], INIT]


def get_inputs():
    return inputs_of(**INPUTS)
)",
                     functions, PythonLiteral(init), PythonLiteral(inputs));
}

std::string CandidateText(const std::string& functions, const std::string& source) {
  return fmt::format(R"({}


{}

class ModelNew(Model):
    def forward(self, *inputs):
        return super().forward(*inputs, fn=extension.forward)
)",
                     functions, PythonExtension(source, IsCudaSource(source)));
}

class Importer {
 public:
  explicit Importer(const ImportRequest& request) : request_(request) {}

  // One task: its folder, and where its kernels lie.
  Result<void> AddTask(const fs::path& folder, const std::vector<fs::path>& kernels) {
    const std::string name = folder.filename().string();
    ASSAY_ASSIGN_OR_RETURN(const std::string functions,
                           ReadFile(folder / "func_forward.py", kFileBytesMax));
    ASSAY_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(folder / "config_forward.json", kFileBytesMax));
    const Json config = Json::parse(text, nullptr, false);
    if (!config.is_object())
      return UsageError(
          fmt::format("{} is no JSON object", (folder / "config_forward.json").string()));
    std::error_code code;
    if (fs::exists(folder / "config_backward.json", code))
      imported_.left_out.push_back(name + ": gradients (func_backward.py) are not imported");
    if (kernels.empty()) imported_.left_out.push_back(name + ": there is no kernel.cu for it");
    int number = 0;
    for (const Json& init : Configs(config, "single_init_configs"))
      for (const Json& inputs : Configs(config, "single_input_configs"))
        for (const Json& shared : Configs(config, "single_shared_configs")) {
          const Json init_all = Joined(init, shared), inputs_all = Joined(inputs, shared);
          const std::string problem_name =
              number++ == 0 ? name : fmt::format("{}_config{}", name, number);
          const size_t problem =
              imported_.AddProblem(problem_name, ProblemText(functions, init_all, inputs_all));
          ASSAY_RETURN_IF_ERROR(
              AddKernels(problem, problem_name, functions, kernels, init_all, inputs_all));
        }
    return {};
  }

  Imported Finish() { return std::move(imported_); }

 private:
  Result<void> AddKernels(size_t problem, const std::string& name, const std::string& functions,
                          const std::vector<fs::path>& kernels, const Json& init,
                          const Json& inputs) {
    for (const fs::path& kernel : kernels) {
      if (request_.limit > 0 && imported_.candidates.size() >= request_.limit) return {};
      ASSAY_ASSIGN_OR_RETURN(const std::string source, ReadFile(kernel, kFileBytesMax));
      const Json origin = {{"format", "robust-kbench"}, {"task", name},
                           {"kernel", kernel.string()}, {"init", init},
                           {"inputs", inputs},          {"claimed_speedup", nullptr}};
      imported_.AddCandidate(problem, name, CandidateText(functions, source), origin.dump());
    }
    return {};
  }

  const ImportRequest& request_;
  Imported imported_;
};

// Kernels of a task: forward/kernel.cu, kernel*.cu and kernel*.cpp of a folder.
std::vector<fs::path> KernelsIn(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code code;
  for (const fs::path& place : {folder / "forward", folder}) {
    if (!fs::is_directory(place, code)) continue;
    for (const auto& entry : fs::directory_iterator(place, code)) {
      const fs::path ending = entry.path().extension();
      if (entry.path().stem().string().starts_with("kernel") &&
          (ending == ".cu" || ending == ".cpp"))
        found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Result<Imported> ImportRobustKbench(const ImportRequest& request) {
  const fs::path root(request.paths.front());
  Importer importer(request);
  std::error_code code;
  if (fs::exists(root / "func_forward.py", code)) {
    const fs::path task = fs::weakly_canonical(root, code);
    std::vector<fs::path> kernels = KernelsIn(task);
    const auto highlighted =
        KernelsIn(task.parent_path().parent_path() / "highlighted" / task.filename());
    kernels.insert(kernels.end(), highlighted.begin(), highlighted.end());
    ASSAY_RETURN_IF_ERROR(importer.AddTask(task, kernels));
    return importer.Finish();
  }
  std::vector<fs::path> tasks;
  for (fs::directory_iterator entry(root / "tasks", code), end; !code && entry != end;
       entry.increment(code))
    if (fs::exists(entry->path() / "func_forward.py", code)) tasks.push_back(entry->path());
  if (code || tasks.empty())
    return UsageError(fmt::format(
        "{} has neither func_forward.py nor tasks/NAME/func_forward.py: name a task's folder, or "
        "a checkout of robust-kbench",
        root.string()));
  std::sort(tasks.begin(), tasks.end());
  for (const fs::path& task : tasks) {
    std::vector<fs::path> kernels = KernelsIn(task);
    const auto highlighted = KernelsIn(root / "highlighted" / task.filename());
    kernels.insert(kernels.end(), highlighted.begin(), highlighted.end());
    ASSAY_RETURN_IF_ERROR(importer.AddTask(task, kernels));
  }
  return importer.Finish();
}

}  // namespace assay
