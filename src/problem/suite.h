// Finding a problem by path or by name, and what suite.toml says of it. The Python file itself is
// loaded by the reference host alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/problem.h"

namespace assay {

struct SuiteProblem {
  std::string name;
  std::string file;  // relative to the suite's folder
  int level = 0;
  std::string mechanism;  // what a good kernel lives from, in one word: scores are grouped by it
  std::string lesson;     // the same in a phrase
  std::map<std::string, std::map<std::string, std::string>>
      sizes;                                                  // size -> NAME -> Python literal
  std::map<std::string, std::pair<int64_t, int64_t>> ragged;  // NAME -> range, ends included
  std::string flops, bytes;                                   // arithmetic on the file's constants
  std::vector<std::string> skip_draws;  // kinds of draws that gate 1 leaves out
  std::string weights;                  // "varied" (also if empty), "constant", "constructed"
  bool allow_libraries = true;          // false: time in foreign libraries is a foul
  std::string precision;
  std::string tolerance;
};

struct Suite {
  std::string folder;
  std::string name;         // empty where the file gives none
  std::string description;  // likewise
  std::vector<SuiteProblem> problems;
};

// Reads FOLDER/suite.toml. Errors (kUsage) name the file, the line, and an unknown key with the
// nearest known one.
Result<Suite> LoadSuite(const std::string& folder);
// The same of text that was read from there; the problems' files must lie in the folder.
Result<Suite> ParseSuite(std::string_view content, const std::string& folder);

struct ProblemChoice {
  std::string problem;                     // path to a .py file, or a name in an installed suite
  std::string size;                        // may be empty
  std::map<std::string, std::string> set;  // on top of the size's values
};
// `suite_folders`: where installed suites lie. For a path, the nearest suite.toml in the file's
// folder or its parents describes it. Errors (kUsage): missing file, unknown name (with the
// nearest), unknown size (with those there are).
Result<ProblemRequest> ResolveProblem(const ProblemChoice& choice,
                                      const std::vector<std::string>& suite_folders);

// What the nearest suite says of a problem file; nothing where none does.
std::optional<SuiteProblem> FindInSuite(const std::string& path);

// Parses "NAME=VALUE"; NAME must be a Python identifier, VALUE non-empty text (UTF-8).
Result<std::pair<std::string, std::string>> ParseSetting(std::string_view text);

// The stub that `assay new` writes: it compiles, names every argument with its shape and dtype, and
// does nothing yet. form: "native" (C++), "c", "python", "cuda" (native CUDA) or "device" (CUDA
// with launch lines).
Result<std::string> WriteStub(const ProblemRequest& request, const ProblemDescription& description,
                              std::string_view form);
// ".cu"; empty: an unknown form.
std::string_view StubSuffix(std::string_view form);

}  // namespace assay
