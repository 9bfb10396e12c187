#include "formats/evaluators.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "formats/python_text.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKinds[] = {"openevolve", "shinka", "verifiers", "openenv"};
constexpr size_t kFileBytesMax = 1 << 20;

void ReplaceAll(std::string* text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size())
    text->replace(at, from.size(), to);
}

// A name for packages: lower-case letters, digits and '_'.
std::string PackageName(const std::string& text) {
  std::string name;
  for (const char c : text)
    name += std::isalnum(static_cast<unsigned char>(c))
                ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                : '_';
  return name;
}

// ShinkaEvolve finds its program by this name.
std::string InitialName(std::string_view kind) {
  return kind == "shinka" ? "initial" : "initial_program";
}

// The block that a search may change is the whole program.
std::string Marked(const EvaluatorTerms& terms) {
  const std::string_view comment = terms.suffix == ".py" ? "#" : "//";
  return fmt::format("{0} EVOLVE-BLOCK-START\n{1}{2}{0} EVOLVE-BLOCK-END\n", comment, terms.initial,
                     terms.initial.ends_with('\n') ? "" : "\n");
}

}  // namespace

std::span<const std::string_view> EvaluatorKinds() { return kKinds; }

bool TakesInitialProgram(std::string_view kind) { return kind == "openevolve" || kind == "shinka"; }

Result<ExportedFiles> EvaluatorFiles(std::string_view kind, const std::string& templates,
                                     const EvaluatorTerms& terms) {
  if (kind == "shinka" && terms.suffix == ".c")
    return UsageError("ShinkaEvolve takes no programs in C: use --form native, which is C++");
  ExportedFiles files;
  const std::string arguments = PythonLiteral(nlohmann::ordered_json(terms.arguments));
  std::vector<fs::path> folders = {fs::path(templates) / kind};
  folders.push_back(fs::path(templates) / (TakesInitialProgram(kind) ? "judge" : "env"));
  for (const fs::path& folder : folders) {
    std::error_code code;
    for (fs::recursive_directory_iterator entry(folder, code), end; !code && entry != end;
         entry.increment(code)) {
      std::error_code unknown;
      if (!entry->is_regular_file(unknown) || entry->path().extension() == ".pyc") continue;
      ASSAY_ASSIGN_OR_RETURN(std::string text, ReadFile(entry->path(), kFileBytesMax));
      ReplaceAll(&text, "[\"@ARGUMENTS@\"]", arguments);
      ReplaceAll(&text, "@NAME@", PackageName(terms.name));
      ReplaceAll(&text, "@SUFFIX@", terms.suffix);
      files[entry->path().lexically_relative(folder).generic_string()] = std::move(text);
    }
    if (code)
      return EnvironmentError(
          fmt::format("the templates are missing from {}: reinstall Assay", folder.string()));
  }
  if (TakesInitialProgram(kind)) files[InitialName(kind) + terms.suffix] = Marked(terms);
  return files;
}

}  // namespace assay
