#include "formats/python_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/hash.h"

namespace assay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kHashDigits = 12;

}  // namespace

std::string PythonString(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string PythonLiteral(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return PythonString(value.get<std::string>());
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const Json& item : value) parts.push_back(PythonLiteral(item));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  if (value.is_object()) {
    for (const auto& [key, item] : value.items())
      parts.push_back(fmt::format("{}: {}", PythonString(key), PythonLiteral(item)));
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  return value.dump();
}

std::string PythonFiles(const std::map<std::string, std::string>& files) {
  std::string all, table;
  for (const auto& [name, content] : files) {
    all += fmt::format("{}\n{}\n{}\n", name, content.size(), content);
    table += fmt::format("    {}: {},\n", PythonString(name), PythonString(content));
  }
  return fmt::format(R"(import os
import sys
import tempfile

FILES = {{
{}}}
FOLDER = os.path.join(tempfile.gettempdir(), "imported-{}")
for _name, _text in FILES.items():
    _path = os.path.join(FOLDER, _name)
    os.makedirs(os.path.dirname(_path), exist_ok=True)
    with open(_path, "w", encoding="utf-8") as _file:
        _file.write(_text)
sys.path.insert(0, FOLDER)
)",
                     table, Sha256Hex(all).substr(0, kHashDigits));
}

bool IsCudaSource(const std::string& source) {
  for (const std::string_view word : {"__global__", "cuda_runtime", "<cuda", "cudaStream", "<<<"})
    if (source.find(word) != std::string::npos) return true;
  return false;
}

std::string PythonExtension(const std::string& source, bool cuda, const std::string& options) {
  return fmt::format(R"(from torch.utils.cpp_extension import load_inline

SOURCE = {}
extension = load_inline(
    name="imported_{}",
    cpp_sources={},
    {}{}
)
)",
                     PythonString(source), Sha256Hex(source).substr(0, kHashDigits),
                     cuda ? "\"\"" : "SOURCE", cuda ? "cuda_sources=SOURCE," : "", options);
}

}  // namespace assay
