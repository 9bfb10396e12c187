#include <CLI/CLI.hpp>

#include "cli/formats_command.h"
#include "cli/validators.h"
#include "formats/evaluators.h"
#include "formats/imported.h"

namespace assay {
namespace {

void AddCommon(CLI::App& command, std::string* output, std::string* python, bool* force,
               bool* allow_weak_sandbox) {
  command.add_option("-o,--output", *output, "Folder to write (default: the format's name)");
  command.add_option("--python", *python,
                     "Python that has PyTorch (default: $ASSAY_PYTHON, or the first found)");
  command.add_flag("--force", *force, "Write into a folder that is not empty");
  AddWeakSandboxFlag(command, allow_weak_sandbox);
}

}  // namespace

void ImportOptions::AddTo(CLI::App& command) {
  std::vector<std::string> kinds;
  std::string footer = "Formats, and what PATH is:\n";
  for (const ImportFormat& format : ImportFormats()) {
    kinds.emplace_back(format.kind);
    footer += "  " + kinds.back() + std::string(18 - format.kind.size(), ' ') +
              std::string(format.description) + "\n";
  }
  command.add_option("KIND", kind, "The format")->required()->check(CLI::IsMember(kinds));
  command.add_option("PATH", paths, "A file or a folder in the format")->required();
  command.add_option("--limit", limit, "At most so many candidates; 0: all")
      ->capture_default_str()
      ->check(Between(int64_t{0}, int64_t{1'000'000}));
  AddCommon(command, &output, &python, &force, &allow_weak_sandbox);
  command.footer(footer +
                 "\nExamples:\n  assay import cuda-l1 optimized_cuda_code/h100.json -o l1\n"
                 "  assay run l1/manifest.jsonl\n"
                 "  assay import popcorn problems/vectoradd mine.py\n\n"
                 "Exit codes: 0 written; 2 the path is not in the format, or nothing in it can be "
                 "imported; 8 this machine\nlacks something, such as pyarrow for .parquet.");
}

void ExportOptions::AddTo(CLI::App& command) {
  std::vector<std::string> kinds = {"flashinfer", "popcorn"};
  for (const std::string_view each : EvaluatorKinds()) kinds.emplace_back(each);
  command
      .add_option("KIND", kind,
                  "flashinfer or popcorn: results; openevolve, shinka, verifiers or openenv: an "
                  "evaluator or an environment")
      ->required()
      ->check(CLI::IsMember(kinds));
  command
      .add_option("SOURCE", problem.problem,
                  "For results: the folder of a run of imported candidates. Else: a problem, by "
                  "name or .py file")
      ->required();
  command.add_option("--size", problem.size, "Named size of the problem, such as small");
  command
      .add_option("--set", problem.set,
                  "NAME=VALUE: change a module-level constant of the problem (repeatable)")
      ->allow_extra_args(false);
  problem.AddGradTo(command);
  command
      .add_option("--form", form,
                  "Of the initial program for openevolve and shinka: python, native, c, cuda or "
                  "device")
      ->capture_default_str()
      ->check(CLI::IsMember({"python", "native", "c", "cuda", "device"}));
  AddCommon(command, &output, &python, &force, &allow_weak_sandbox);
  command.footer(
      "Examples:\n  assay export flashinfer traces/ -o dataset\n"
      "  assay export openevolve softmax --size small -o evolve\n\n"
      "Exit codes: 0 written; 2 usage, or there is nothing to export; 8 this machine lacks "
      "something.");
}

}  // namespace assay
