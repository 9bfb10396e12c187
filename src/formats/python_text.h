// Pieces of the Python files that importers write. Pure.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace assay {

// A string literal.
std::string PythonString(std::string_view text);
// The value as an expression: None, True, numbers, text, lists and dictionaries.
std::string PythonLiteral(const nlohmann::ordered_json& value);

// Statements that write `files` (relative path -> content) into a folder of their own below the
// temporary folder, which is private in the sandbox, and put that folder first among the places
// where modules are looked for. The name FOLDER then has it. The same files give the same folder,
// so that what is built of them is found again.
std::string PythonFiles(const std::map<std::string, std::string>& files);

// Statements that build `source`, C++ or, with `cuda`, CUDA that binds its functions itself, as an
// extension that the name `extension` then has. `options`: further arguments of load_inline, as
// Python text.
std::string PythonExtension(const std::string& source, bool cuda, const std::string& options = "");
// Whether the source is for nvcc.
bool IsCudaSource(const std::string& source);

}  // namespace assay
