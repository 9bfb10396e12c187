// Finds a problem by path or by name, and its entry in suite.toml. Only the reference host loads
// the Python file itself.
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
  std::string mechanism;  // the source of a good kernel's gain, in one word; groups scores
  std::string lesson;     // the same in a phrase
  std::map<std::string, std::map<std::string, std::string>>
      sizes;                                                  // size -> NAME -> Python literal
  std::map<std::string, std::pair<int64_t, int64_t>> ragged;  // NAME -> range, ends included
  std::string flops, bytes;                                   // arithmetic on the file's constants
  std::string operands;  // dtype of what is multiplied; empty: that of the first output
  std::vector<std::string> skip_draws;  // kinds of draws that gate 1 leaves out
  std::string special_values;           // "required", "noted", or empty
  std::string weights;                  // "varied" (also if empty), "constant", "constructed"
  bool allow_libraries = true;          // false: time in foreign libraries is a foul
  std::string precision;
  std::string tolerance;
};

struct Suite {
  std::string folder;
  std::string name;         // empty if the file gives none
  std::string description;  // likewise
  std::vector<SuiteProblem> problems;
};

// Reads FOLDER/suite.toml. Errors (kUsage) name the file, the line, and an unknown key with the
// nearest known one.
Result<Suite> LoadSuite(const std::string& folder);
// The same for the text of such a file; the problems' files must lie in the folder.
Result<Suite> ParseSuite(std::string_view content, const std::string& folder);

// NAME -> Python literal.
using ProblemSettings = std::map<std::string, std::string>;

// Reads a file with constants for problems that no suite describes: [level1] has a line
// `23_Softmax = { dim = 4096 }` for each problem. The keys of the result are "level1/23_Softmax".
// Errors (kUsage) name the file and the line.
Result<std::map<std::string, ProblemSettings>> ReadSizesFile(const std::string& path);

struct ProblemChoice {
  std::string problem;                     // path to a .py file, or a name in an installed suite
  std::string size;                        // may be empty
  std::map<std::string, std::string> set;  // on top of the size's values
  bool gradients = false;                  // of a call, too (--grad)
};
// `suite_folders`: the folders of installed suites. A path is described by the nearest suite.toml
// in the file's folder or its parents. Errors (kUsage): missing file, unknown name (with the
// nearest), unknown size (with the known ones).
Result<ProblemRequest> ResolveProblem(const ProblemChoice& choice,
                                      const std::vector<std::string>& suite_folders);

// Returns a problem file's entry in the nearest suite; nullopt if there is none.
std::optional<SuiteProblem> FindInSuite(const std::string& path);

// Parses "NAME=VALUE"; NAME must be a Python identifier, VALUE non-empty UTF-8. Errors: kUsage.
Result<std::pair<std::string, std::string>> ParseSetting(std::string_view text);

// Returns the stub that `assay new` writes: it compiles, names every argument with its shape and
// dtype, and computes nothing; in Python it is a copy of the reference. `form`: "native" (C++),
// "c", "python", "cuda" (native CUDA) or "device" (CUDA with launch lines). `file`: its name in the
// command that judges it; empty: the problem's with the form's suffix. Errors: kUsage.
Result<std::string> WriteStub(const ProblemRequest& request, const ProblemDescription& description,
                              std::string_view form, std::string_view file = {});
// Returns the file suffix of a form, such as ".cu"; empty: an unknown form.
std::string_view StubSuffix(std::string_view form);

}  // namespace assay
