#include "cli/model_options.h"

#include <CLI/CLI.hpp>

namespace assay {

void ModelOptions::AddTo(CLI::App& command) {
  command
      .add_option("MANIFEST", path,
                  "A .toml file with a model's places and their kernels, or a folder that has "
                  "some: that of --device is taken")
      ->required();
  command
      .add_option("--device", device,
                  "cpu or cuda (default: the GPU where there is one and a manifest for it)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--size", size, "Named size from suite.toml (default: the manifest's)");
  command.add_option("--set", set, "NAME=VALUE: change a constant of the problem (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--only", only,
                     "Swap these places alone, with commas, in the manifest's order");
  command.add_option("--baseline", baseline,
                     "What the models must beat, as in assay judge (default: the manifest's)");
  command.add_option("--chart", chart, "Write the picture of where the time goes (SVG)");
  command.add_option("--write", write, "Write the composed candidates into this folder");
  command
      .add_option("--rounds", rounds,
                  "Blocks from which a part's time is the median; 0: parts are not measured")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  command.add_flag("--whole", whole, "Judge the model with all kernels alone, not each swap");
  CLI::Option* compose = command.add_flag("--compose-only", compose_only,
                                          "Judge nothing: compose the candidates alone");
  command.add_flag("--parts-only", parts_only, "Judge nothing: the parts' times and the errors")
      ->excludes(compose);
  command
      .add_option("--threads", asked.threads, "Threads of each side (default: all cores but one)")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--budget", asked.effort.speed_budget_s,
                  "Seconds for gate 2, of each candidate against each baseline")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--correctness-only", asked.effort.correctness_only, "Stop after gate 1");
  command.add_option("--python", asked.python, "Python interpreter that has PyTorch");
  command.add_flag("--json", json, "One JSON document on stdout");
  command.add_flag("--no-save", no_save, "Do not keep the verdicts for assay explain");
  command.add_flag("-q,--quiet", quiet, "No progress on stderr");
  command.add_flag("-v,--verbose", verbose, "Progress as plain lines");
  AddWeakSandboxFlag(command, &allow_weak_sandbox);
  command.footer(
      "Example:\n  assay model kernels/model --device cpu --size tiny\n\n"
      "Exit codes: 0 every model is correct, however fast; else the gravest of: 3 wrong; 4 did not "
      "build;\n5 crashed, timed out or out of memory; 6 foul; 2 usage; 8 this machine lacks "
      "something; 130 interrupted.");
}

}  // namespace assay
