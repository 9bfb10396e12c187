// Evaluators for searches, and environments for training, that ask Assay: filled from the templates
// in lib/assay/exports.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/results_out.h"

namespace assay {

// "openevolve", "shinka", "verifiers", "openenv".
std::span<const std::string_view> EvaluatorKinds();

struct EvaluatorTerms {
  std::string name;                    // the problem's, for names of packages
  std::vector<std::string> arguments;  // of assay judge and assay env: the problem, its size
  std::string initial;                 // the program that a search begins with; empty: none
  std::string suffix;                  // of its file, such as ".py"
};

bool TakesInitialProgram(std::string_view kind);

// Returns the files of the kind. `templates`: the folder with a folder a kind. Errors: kEnvironment
// if the templates are missing; kUsage if the kind has no programs of that suffix.
Result<ExportedFiles> EvaluatorFiles(std::string_view kind, const std::string& templates,
                                     const EvaluatorTerms& terms);

}  // namespace assay
