// The parts that an importer makes of a foreign file: problems, candidates, and where each came
// from; and the folder that `assay run` takes (docs/formats.md).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

struct ImportedProblem {
  std::string name;  // of its file, without .py; unique
  std::string text;  // Python, in KernelBench's form
};

struct ImportedCandidate {
  size_t problem = 0;  // index into Imported::problems
  std::string name;    // of its file, without .py; unique
  std::string text;    // Python with a class ModelNew
  std::string origin;  // a JSON object: the identity and the claims that the foreign file has
};

struct Imported {
  std::vector<ImportedProblem> problems;
  std::vector<ImportedCandidate> candidates;
  std::vector<std::string> left_out;  // a line for each thing that was not imported, and why
  std::vector<std::string> notes;     // what a reader should know of what was imported

  // Returns the index of the problem, which is added under a unique name made of `name`; a problem
  // with the same name and text is added once.
  size_t AddProblem(std::string_view name, std::string text);
  // Gives the candidate a unique name made of `name`.
  void AddCandidate(size_t problem, std::string_view name, std::string text, std::string origin);
};

// Turns a file in another notation into lines of JSON: (kind, content) with the kinds "yaml" (one
// line) and "parquet" (a line a row). Errors: kUsage if the content is broken; kEnvironment if this
// machine lacks the reader.
using ForeignReader =
    std::function<Result<std::string>(std::string_view kind, const std::string& content)>;

struct ImportRequest {
  std::vector<std::string> paths;  // the first one is the format's file or folder
  ForeignReader read;
  size_t limit = 0;  // candidates; 0: all
};

// A format that Assay reads.
struct ImportFormat {
  std::string_view kind;         // as on the command line
  std::string_view description;  // the file or folder that it takes
  Result<Imported> (*import)(const ImportRequest& request);
};
const std::vector<ImportFormat>& ImportFormats();
// Errors (kUsage): an unknown kind; a path that does not exist or is not in the format.
Result<Imported> Import(std::string_view kind, const ImportRequest& request);

// Writes problems/, candidates/, manifest.jsonl and origin.jsonl into the folder, the two last ones
// last. Errors: kUsage if the folder holds files and `force` is false; kEnvironment.
Result<void> WriteImported(const Imported& imported, const std::string& folder, bool force);

inline constexpr const char* kManifestName = "manifest.jsonl";
inline constexpr const char* kOriginName = "origin.jsonl";

}  // namespace assay
