// assay import and assay export: other people's formats (docs/formats.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/options.h"

namespace assay {

struct ImportOptions {
  std::string kind;
  std::vector<std::string> paths;
  std::string output, python;
  size_t limit = 0;  // candidates; 0: all
  bool force = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

struct ExportOptions {
  std::string kind;
  // `problem` is the positional argument: a problem, or for results the folder of a run.
  ProblemOptions problem;
  std::string output, python, form = "python";
  bool force = false, allow_weak_sandbox = false;

  void AddTo(CLI::App& command);
};

int RunImport(const ImportOptions& options);
int RunExport(const ExportOptions& options);

}  // namespace assay
