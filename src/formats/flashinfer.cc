#include "formats/flashinfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "base/files.h"
#include "formats/python_text.h"
#include "formats/safetensors.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kTensorFileBytesMax = size_t{1} << 30;
// The problem's file holds the values, and has 4 MiB at most.
constexpr size_t kStoredBytesMax = 1 << 20;

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

const Json& Member(const Json& object, const char* key) {
  static const Json kNothing = Json::object();
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}

// Assignments to AXES, those of expressions last: they are arithmetic on the others.
Result<std::string> AxesText(const Json& definition, const Json& workload) {
  std::string values, expressions;
  for (const auto& [name, axis] : Member(definition, "axes").items()) {
    const std::string type = axis.value("type", "");
    const Json& given = Member(workload, "axes");
    if (type == "const") {
      values += fmt::format("AXES[{}] = {}\n", PythonString(name),
                            PythonLiteral(axis.value("value", Json())));
    } else if (type == "var") {
      if (!given.contains(name) || !given[name].is_number_integer())
        return UsageError(fmt::format("the workload has no value for axis {}", name));
      values += fmt::format("AXES[{}] = {}\n", PythonString(name), PythonLiteral(given[name]));
    } else if (type == "expr") {
      const std::string text = axis.value("expression", "");
      if (!std::regex_match(text, std::regex(R"([A-Za-z0-9_+\-*/%() ]+)")))
        return UsageError(fmt::format("axis {}: '{}' is no arithmetic on axes", name, text));
      expressions += fmt::format(
          "AXES[{}] = {}\n", PythonString(name),
          std::regex_replace(text, std::regex("[A-Za-z_][A-Za-z0-9_]*"), "AXES[\"$&\"]"));
    } else {
      return UsageError(fmt::format("axis {} has the unknown type '{}'", name, type));
    }
  }
  return "AXES = {}\n" + values + expressions;
}

// The shape as a Python tuple.
std::string ShapeText(const Json& shape) {
  std::string text;
  for (const Json& axis : shape)
    text += (axis.is_string() ? fmt::format("AXES[{}]", PythonString(axis.get<std::string>()))
                              : axis.dump()) +
            ", ";
  return "(" + text + ")";
}

Result<std::string> RandomText(const std::string& name, const Json& spec) {
  const std::string dtype = spec.value("dtype", "");
  const std::string shape = ShapeText(Member(spec, "shape"));
  if (!std::regex_match(dtype, std::regex("[a-z0-9_]+")))
    return UsageError(fmt::format("input {} has no dtype", name));
  if (dtype == "bool") return fmt::format("torch.rand{} < 0.5", shape);
  if (dtype == "int8" || dtype == "uint8")
    return fmt::format("torch.randint({}, {}, {}, dtype=torch.{})", dtype == "int8" ? -128 : 0,
                       dtype == "int8" ? 128 : 256, shape, dtype);
  if (dtype.starts_with("int"))
    return UsageError(fmt::format(
        "input {} is random {}: nothing says which numbers are allowed; give its values as "
        "safetensors",
        name, dtype));
  if (dtype.starts_with("float8")) return fmt::format("torch.randn({}).to(torch.{})", shape, dtype);
  return fmt::format("torch.randn({}, dtype=torch.{})", shape, dtype);
}

Result<std::string> StoredText(const std::string& name, const Json& given, const fs::path& root) {
  const fs::path path = root / given.value("path", "");
  auto file = ReadFile(path, kTensorFileBytesMax);
  if (!file) return UsageError(fmt::format("input {}: {}", name, file.error().message));
  auto tensor = ReadStoredTensor(*file, given.value("tensor_key", name));
  if (!tensor)
    return UsageError(fmt::format("input {}: {}: {}", name, path.string(), tensor.error().message));
  if (tensor->bytes.size() > kStoredBytesMax)
    return UsageError(fmt::format("input {} has {} bytes in {}: a problem's file holds at most {}",
                                  name, tensor->bytes.size(), path.string(), kStoredBytesMax));
  return fmt::format("stored(\"{}\", torch.{}, {})", Hex(tensor->bytes), tensor->dtype,
                     PythonLiteral(tensor->shape));
}

// The elements of get_inputs(), a line each.
Result<std::string> InputsText(const Json& definition, const Json& workload, const fs::path& root) {
  std::string text;
  const Json& given_inputs = Member(workload, "inputs");
  for (const auto& [name, spec] : Member(definition, "inputs").items()) {
    const Json& given = Member(given_inputs, name.c_str());
    const std::string type = given.value("type", "random");
    std::string value;
    if (type == "scalar") {
      value = PythonLiteral(given.value("value", Json()));
    } else if (type == "safetensors") {
      ASSAY_ASSIGN_OR_RETURN(value, StoredText(name, given, root));
    } else if (type == "random" && spec.contains("shape") && spec["shape"].is_array()) {
      ASSAY_ASSIGN_OR_RETURN(value, RandomText(name, spec));
    } else {
      return UsageError(fmt::format(
          "input {} is of type '{}': only random tensors, scalars and safetensors are imported",
          name, type));
    }
    text += fmt::format("        {},\n", value);
  }
  return text;
}

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

// The function that gives results the same form, whichever form they came in.
constexpr const char* kResults = R"(

def results(value):
    if isinstance(value, dict):
        value = [value[name] for name in OUTPUTS]
    if isinstance(value, (list, tuple)):
        return value[0] if len(value) == 1 else tuple(value)
    return value
)";

// The sizes that a call has: those of its tensors, and the definition's constants.
std::string AxesOfCall(const Json& definition) {
  std::string text = "        axes = {}\n";
  for (const auto& [name, axis] : Member(definition, "axes").items())
    if (axis.value("type", "") == "const")
      text += fmt::format("        axes[{}] = {}\n", PythonString(name),
                          PythonLiteral(axis.value("value", Json())));
  int number = 0;
  for (const auto& [name, spec] : Member(definition, "inputs").items()) {
    int dimension = 0;
    for (const Json& axis : Member(spec, "shape")) {
      if (axis.is_string())
        text += fmt::format("        axes[{}] = inputs[{}].shape[{}]\n",
                            PythonString(axis.get<std::string>()), number, dimension);
      ++dimension;
    }
    ++number;
  }
  return text;
}

// Allocates the outputs, in their order.
std::string OutputsOfCall(const Json& definition) {
  std::string text = AxesOfCall(definition) +
                     "        device = next(x.device for x in inputs if hasattr(x, \"device\"))\n"
                     "        outputs = [\n";
  for (const auto& [name, spec] : Member(definition, "outputs").items()) {
    std::string shape;
    for (const Json& axis : Member(spec, "shape"))
      shape += (axis.is_string() ? fmt::format("axes[{}]", PythonString(axis.get<std::string>()))
                                 : axis.dump()) +
               ", ";
    text += fmt::format("            torch.empty(({}), dtype=torch.{}, device=device),\n", shape,
                        spec.value("dtype", "float32"));
  }
  return text + "        ]\n";
}

bool IsPythonLanguage(const std::string& language) {
  return language == "python" || language == "triton" || language == "pytorch" ||
         language == "cutedsl";
}

struct Entry {
  std::string module, function;  // of "main.py::run"
};

Result<Entry> EntryOf(const Json& spec) {
  const std::string text = spec.value("entry_point", "");
  const size_t cut = text.find("::");
  if (cut == std::string::npos)
    return UsageError(fmt::format("entry_point '{}' is no FILE::FUNCTION", text));
  const Entry entry{text.substr(0, cut), text.substr(cut + 2)};
  if (!std::regex_match(entry.function, std::regex("[A-Za-z_][A-Za-z0-9_]*")))
    return UsageError(fmt::format("entry_point '{}' names no function", text));
  return entry;
}

std::vector<std::string> LanguagesOf(const Json& spec) {
  std::vector<std::string> languages;
  if (spec.contains("language") && spec["language"].is_string())
    languages.push_back(spec["language"].get<std::string>());
  for (const Json& language : Member(spec, "languages"))
    if (language.is_string()) languages.push_back(language.get<std::string>());
  return languages;
}

// Imports the entry's function under the name `entry`.
Result<std::string> EntryText(const Json& solution, const Json& spec, const Entry& entry) {
  std::map<std::string, std::string> files;
  std::string cuda;
  for (const Json& source : Member(solution, "sources")) {
    const std::string path = source.value("path", ""), content = source.value("content", "");
    if (path.empty() || fs::path(path).is_absolute() || path.find("..") != std::string::npos)
      return UsageError(fmt::format("the source's path '{}' leaves the solution", path));
    files[path] = content;
    if (!path.ends_with(".py")) cuda += content + "\n";
  }
  bool python = true;
  for (const std::string& language : LanguagesOf(spec))
    python = python && IsPythonLanguage(language);
  if (python && entry.module.ends_with(".py")) {
    std::string module = entry.module.substr(0, entry.module.size() - 3);
    std::replace(module.begin(), module.end(), '/', '.');
    return fmt::format("{}\nfrom {} import {} as entry\n", PythonFiles(files), module,
                       entry.function);
  }
  if (spec.value("binding", "tvm-ffi") != "torch")
    return UsageError(
        "its binding is tvm-ffi, which is not supported: only Python, Triton and binding torch");
  if (cuda.find("PYBIND11_MODULE") == std::string::npos)
    cuda += fmt::format("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def(\"{0}\", &{0}); }}\n",
                        entry.function);
  return fmt::format("{}\nentry = extension.{}\n", PythonExtension(cuda, IsCudaSource(cuda)),
                     entry.function);
}

}  // namespace

Result<std::string> FlashInferProblem(const Json& definition, const Json& workload,
                                      const fs::path& root) {
  const std::string reference = definition.value("reference", "");
  if (reference.find("def run") == std::string::npos)
    return UsageError("the definition's reference has no function run");
  ASSAY_ASSIGN_OR_RETURN(const std::string axes, AxesText(definition, workload));
  ASSAY_ASSIGN_OR_RETURN(const std::string inputs, InputsText(definition, workload, root));
  return fmt::format(R"({}

import torch
import torch.nn as nn

OUTPUTS = {}
{}

def stored(text, dtype, shape):
    return torch.frombuffer(bytearray.fromhex(text), dtype=dtype).reshape(shape)
{}

class Model(nn.Module):
    def forward(self, {}):
        return results(run({}))


def get_inputs():
    return [
{}    ]


def get_init_inputs():
    return []
)",
                     reference, PythonLiteral(Json(Keys(Member(definition, "outputs")))), axes,
                     kResults, fmt::join(Keys(Member(definition, "inputs")), ", "),
                     fmt::join(Keys(Member(definition, "inputs")), ", "), inputs);
}

Result<std::string> FlashInferCandidate(const Json& definition, const Json& solution) {
  const Json& spec = Member(solution, "spec");
  ASSAY_ASSIGN_OR_RETURN(const Entry entry, EntryOf(spec));
  ASSAY_ASSIGN_OR_RETURN(const std::string imports, EntryText(solution, spec, entry));
  const bool passes_outputs = spec.value("destination_passing_style", true);
  const std::string call = passes_outputs ? OutputsOfCall(definition) +
                                                "        entry(*inputs, *outputs)\n"
                                                "        return results(outputs)\n"
                                          : "        return results(entry(*inputs))\n";
  return fmt::format(R"({}
import torch
import torch.nn as nn

OUTPUTS = {}
{}

class ModelNew(nn.Module):
    def forward(self, *inputs):
{})",
                     imports, PythonLiteral(Json(Keys(Member(definition, "outputs")))), kResults,
                     call);
}

}  // namespace assay
