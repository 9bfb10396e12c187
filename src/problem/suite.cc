// Reads suite.toml strictly: an unknown key is an error, never skipped.
#include "problem/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/files.h"
#include "base/toml.h"
#include "base/utf8.h"
#include "model/dtype.h"
#include "problem/nearest.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSuiteBytesMax = 1 << 20;
constexpr int kNestingMax = 8;
constexpr int kLevelMax = 9;

// Where an error stands: "problems/suite.toml line 12".
std::string At(const std::string& path, const toml::source_region& region) {
  return fmt::format("{} line {}", path, region.begin.line);
}

bool IsIdentifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

// Names of problems and sizes appear in paths, options and messages.
bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 100 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

std::string QuotedForPython(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\'' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string FloatForPython(double value) {
  if (std::isnan(value)) return "float('nan')";
  if (std::isinf(value)) return value > 0 ? "float('inf')" : "-float('inf')";
  std::string text = fmt::format("{}", value);  // shortest form that reads back as the same number
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// The value as Python writes it; nullopt for what has no such form here (dates, tables, deep
// nesting).
std::optional<std::string> PythonLiteral(const toml::node& node, int depth = 0) {
  if (const auto* integer = node.as_integer()) return fmt::format("{}", integer->get());
  if (const auto* number = node.as_floating_point()) return FloatForPython(number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "True" : "False";
  if (const auto* text = node.as_string()) return QuotedForPython(text->get());
  const auto* array = node.as_array();
  if (array == nullptr || depth == kNestingMax) return std::nullopt;
  std::string list;
  for (const toml::node& element : *array) {
    const auto literal = PythonLiteral(element, depth + 1);
    if (!literal) return std::nullopt;
    list += (list.empty() ? "" : ", ") + *literal;
  }
  return "[" + list + "]";
}

// {CONSTANT = value, ...} of the file at `path`.
Result<ProblemSettings> ConstantsOf(const toml::table& table, const std::string& path) {
  ProblemSettings set;
  for (const auto& [name, value] : table) {
    const auto literal = PythonLiteral(value);
    if (!IsIdentifier(name.str()) || !literal) {
      return UsageError(fmt::format(
          "{}: '{}' must be a Python name with a number, a string, true, false or a list",
          At(path, name.source()), name.str()));
    }
    set[std::string(name.str())] = *literal;
  }
  return set;
}

// Reads one table of a suite file; each taker errs with the line.
class TableReader {
 public:
  TableReader(const std::string& path, const toml::table& table) : path_(path), table_(table) {}

  Result<void> AllowKeys(const std::vector<std::string>& known, std::string_view where) const {
    for (const auto& [key, value] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      return UsageError(fmt::format("{}: unknown key '{}' in {}{}", At(path_, key.source()),
                                    key.str(), where, Suggestion(key.str(), known)));
    }
    return {};
  }

  Result<std::string> Text(std::string_view key, bool required) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr && !required) return std::string();
    if (node == nullptr)
      return UsageError(fmt::format("{}: a problem needs '{}'", At(path_, table_.source()), key));
    if (!node->is_string() || node->as_string()->get().empty()) {
      return UsageError(
          fmt::format("{}: '{}' must be a non-empty string", At(path_, node->source()), key));
    }
    return node->as_string()->get();
  }

  Result<std::vector<std::string>> Texts(std::string_view key) const {
    std::vector<std::string> texts;
    const toml::node* node = table_.get(key);
    if (node == nullptr) return texts;
    if (node->is_array()) {
      for (const toml::node& text : *node->as_array())
        if (text.is_string()) texts.push_back(text.as_string()->get());
      if (texts.size() == node->as_array()->size()) return texts;
    }
    return UsageError(
        fmt::format("{}: '{}' must be a list of strings", At(path_, node->source()), key));
  }

  Result<int> Level() const {
    const toml::node* node = table_.get("level");
    if (node == nullptr) return 0;
    const auto* level = node->as_integer();
    if (level == nullptr || level->get() < 1 || level->get() > kLevelMax) {
      return UsageError(fmt::format("{}: 'level' must be a whole number from 1 to {}",
                                    At(path_, node->source()), kLevelMax));
    }
    return static_cast<int>(level->get());
  }

  Result<std::map<std::string, std::map<std::string, std::string>>> Sizes() const {
    std::map<std::string, std::map<std::string, std::string>> sizes;
    const toml::node* node = table_.get("sizes");
    if (node == nullptr) return sizes;
    const toml::table* table = node->as_table();
    if (table == nullptr) {
      return UsageError(
          fmt::format("{}: 'sizes' must be a table of size names", At(path_, node->source())));
    }
    for (const auto& [size, constants] : *table) {
      if (!IsName(size.str()) || !constants.is_table()) {
        return UsageError(fmt::format("{}: a size is written NAME = {{CONSTANT = value}}",
                                      At(path_, size.source())));
      }
      ASSAY_ASSIGN_OR_RETURN(sizes[std::string(size.str())],
                             ConstantsOf(*constants.as_table(), path_));
    }
    return sizes;
  }

  Result<bool> Flag(std::string_view key, bool otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    if (!node->is_boolean())
      return UsageError(
          fmt::format("{}: '{}' must be true or false", At(path_, node->source()), key));
    return node->as_boolean()->get();
  }

  Result<std::map<std::string, std::pair<int64_t, int64_t>>> Ragged() const {
    std::map<std::string, std::pair<int64_t, int64_t>> ranges;
    const toml::node* node = table_.get("ragged");
    if (node == nullptr) return ranges;
    const auto refuse = [&](const toml::node& at) {
      return UsageError(fmt::format(
          "{}: 'ragged' is a table of CONSTANT = [least, most], whole numbers from 1 on",
          At(path_, at.source())));
    };
    if (!node->is_table()) return refuse(*node);
    for (const auto& [name, value] : *node->as_table()) {
      const auto* range = value.as_array();
      if (!IsIdentifier(name.str()) || range == nullptr || range->size() != 2) return refuse(value);
      const auto* least = range->get(0)->as_integer();
      const auto* most = range->get(1)->as_integer();
      if (least == nullptr || most == nullptr || least->get() < 1 || most->get() < least->get())
        return refuse(value);
      ranges[std::string(name.str())] = {least->get(), most->get()};
    }
    return ranges;
  }

  const toml::source_region& SourceOf(std::string_view key) const {
    return table_.get(key)->source();
  }

 private:
  const std::string& path_;
  const toml::table& table_;
};

bool IsInsideFolder(const std::string& file) {
  const fs::path path(file);
  if (path.is_absolute() || path.extension() != ".py") return false;
  return std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

Result<SuiteProblem> ReadProblem(const std::string& path, const toml::table& table) {
  const TableReader reader(path, table);
  ASSAY_RETURN_IF_ERROR(
      reader.AllowKeys({"name", "file", "level", "mechanism", "lesson", "sizes", "ragged", "flops",
                        "bytes", "operands", "skip_draws", "special_values", "precision",
                        "tolerance", "weights", "allow_libraries"},
                       "[[problem]]"));
  SuiteProblem problem;
  ASSAY_ASSIGN_OR_RETURN(problem.name, reader.Text("name", true));
  ASSAY_ASSIGN_OR_RETURN(problem.file, reader.Text("file", true));
  ASSAY_ASSIGN_OR_RETURN(problem.level, reader.Level());
  ASSAY_ASSIGN_OR_RETURN(problem.mechanism, reader.Text("mechanism", false));
  ASSAY_ASSIGN_OR_RETURN(problem.lesson, reader.Text("lesson", false));
  ASSAY_ASSIGN_OR_RETURN(problem.flops, reader.Text("flops", false));
  ASSAY_ASSIGN_OR_RETURN(problem.bytes, reader.Text("bytes", false));
  ASSAY_ASSIGN_OR_RETURN(problem.operands, reader.Text("operands", false));
  if (!problem.operands.empty() && !DTypeFromName(problem.operands)) {
    return UsageError(fmt::format("{}: 'operands' must be a dtype, such as \"float8_e4m3fn\"",
                                  At(path, reader.SourceOf("operands"))));
  }
  ASSAY_ASSIGN_OR_RETURN(problem.ragged, reader.Ragged());
  ASSAY_ASSIGN_OR_RETURN(problem.skip_draws, reader.Texts("skip_draws"));
  ASSAY_ASSIGN_OR_RETURN(problem.precision, reader.Text("precision", false));
  ASSAY_ASSIGN_OR_RETURN(problem.tolerance, reader.Text("tolerance", false));
  ASSAY_ASSIGN_OR_RETURN(problem.allow_libraries, reader.Flag("allow_libraries", true));
  ASSAY_ASSIGN_OR_RETURN(problem.weights, reader.Text("weights", false));
  if (!problem.weights.empty() && !WeightsKindFromName(problem.weights)) {
    return UsageError(
        fmt::format("{}: 'weights' must be \"varied\", \"constant\" or \"constructed\"",
                    At(path, reader.SourceOf("weights"))));
  }
  ASSAY_ASSIGN_OR_RETURN(problem.special_values, reader.Text("special_values", false));
  if (!problem.special_values.empty() && problem.special_values != "required" &&
      problem.special_values != "noted") {
    return UsageError(fmt::format("{}: 'special_values' must be \"required\" or \"noted\"",
                                  At(path, reader.SourceOf("special_values"))));
  }
  ASSAY_ASSIGN_OR_RETURN(problem.sizes, reader.Sizes());
  if (!IsName(problem.name)) {
    return UsageError(fmt::format("{}: a problem's name may hold letters, digits, '_', '-' and '.'",
                                  At(path, reader.SourceOf("name"))));
  }
  if (!IsInsideFolder(problem.file)) {
    return UsageError(fmt::format("{}: 'file' must be a .py file inside the suite's folder",
                                  At(path, reader.SourceOf("file"))));
  }
  const auto precision = PrecisionClassFromName(problem.precision);
  if (!problem.precision.empty() && (!precision || *precision == PrecisionClass::kFloat8)) {
    return UsageError(
        fmt::format("{}: unknown precision '{}'; known: float64, float32, tf32, "
                    "float16, bfloat16, exact",
                    At(path, reader.SourceOf("precision")), problem.precision));
  }
  if (!problem.tolerance.empty() && problem.tolerance != "error-ratio" &&
      !problem.tolerance.starts_with("allclose:")) {
    return UsageError(fmt::format("{}: 'tolerance' must be \"error-ratio\" or \"allclose:1e-4\"",
                                  At(path, reader.SourceOf("tolerance"))));
  }
  return problem;
}

Result<Suite> ReadSuite(const std::string& folder, const std::string& path,
                        const toml::table& table) {
  const TableReader reader(path, table);
  ASSAY_RETURN_IF_ERROR(reader.AllowKeys({"name", "description", "problem"}, "a suite"));
  Suite suite;
  suite.folder = folder;
  ASSAY_ASSIGN_OR_RETURN(suite.name, reader.Text("name", false));
  ASSAY_ASSIGN_OR_RETURN(suite.description, reader.Text("description", false));
  const toml::node* problems = table.get("problem");
  if (problems == nullptr || !problems->is_array() || problems->as_array()->empty())
    return UsageError(fmt::format("{}: a suite needs at least one [[problem]]", path));
  for (const toml::node& node : *problems->as_array()) {
    if (!node.is_table()) {
      return UsageError(
          fmt::format("{}: a problem is written as a [[problem]] table", At(path, node.source())));
    }
    ASSAY_ASSIGN_OR_RETURN(SuiteProblem problem, ReadProblem(path, *node.as_table()));
    std::error_code unknown;
    if (!fs::is_regular_file(fs::path(folder) / problem.file, unknown)) {
      return UsageError(fmt::format("{}: problem '{}': there is no file {}",
                                    At(path, node.source()), problem.name,
                                    (fs::path(folder) / problem.file).string()));
    }
    for (const SuiteProblem& earlier : suite.problems) {
      if (earlier.name == problem.name) {
        return UsageError(fmt::format("{}: a second problem is named '{}'", At(path, node.source()),
                                      problem.name));
      }
    }
    suite.problems.push_back(std::move(problem));
  }
  return suite;
}

}  // namespace

Result<Suite> LoadSuite(const std::string& folder) {
  ASSAY_ASSIGN_OR_RETURN(const std::string content,
                         ReadFile(fs::path(folder) / "suite.toml", kSuiteBytesMax));
  return ParseSuite(content, folder);
}

Result<Suite> ParseSuite(std::string_view content, const std::string& folder) {
  const std::string path = (fs::path(folder) / "suite.toml").string();
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseToml(content, path));
  return ReadSuite(folder, path, table);
}

Result<std::map<std::string, ProblemSettings>> ReadSizesFile(const std::string& path) {
  ASSAY_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, kSuiteBytesMax));
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseToml(content, path));
  std::map<std::string, ProblemSettings> sizes;
  for (const auto& [level, problems] : table) {
    if (!problems.is_table())
      return UsageError(
          fmt::format("{}: write [level1], and below it PROBLEM = {{CONSTANT = value}}",
                      At(path, level.source())));
    for (const auto& [problem, constants] : *problems.as_table()) {
      if (!constants.is_table())
        return UsageError(fmt::format("{}: a size is written PROBLEM = {{CONSTANT = value}}",
                                      At(path, problem.source())));
      const std::string key = fmt::format("{}/{}", level.str(), problem.str());
      ASSAY_ASSIGN_OR_RETURN(sizes[key], ConstantsOf(*constants.as_table(), path));
    }
  }
  return sizes;
}

Result<std::pair<std::string, std::string>> ParseSetting(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (equals == std::string_view::npos || !IsIdentifier(name) ||
      text.find_first_not_of(" \t", equals + 1) == std::string_view::npos) {
    return UsageError(
        fmt::format("'{}' is not NAME=VALUE, with the name of a constant of the problem file and a "
                    "Python value",
                    text));
  }
  if (!IsUtf8(text))
    return UsageError(fmt::format("the value of '{}' is not text: it is not UTF-8", name));
  return std::pair{std::string(name), std::string(text.substr(equals + 1))};
}

}  // namespace assay
