// The commands about the command line itself: completion, man, config.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/completion.h"
#include "cli/config.h"
#include "cli/options.h"
#include "pipeline/version.h"

namespace assay {

void CompletionOptions::AddTo(CLI::App& command) {
  command.add_option("SHELL", shell, "bash, zsh or fish")->required();
  command.footer("Example:\n  source <(assay completion bash)");
}

int RunCompletion(const CLI::App& app, const CompletionOptions& options) {
  const auto script = CompletionScript(app, options.shell);
  if (!script) return ReportError(script.error());
  std::fputs(script->c_str(), stdout);
  return 0;
}

int RunManual(const CLI::App& app) {
  std::fputs(ManualPage(app, kAssayVersion).c_str(), stdout);
  return 0;
}

void ConfigOptions::AddTo(CLI::App& command) {
  command.add_option("ACTION", action, "show")->required()->check(CLI::IsMember({"show"}));
  command.add_flag("--origin", origin, "Say where each value comes from");
  command.footer(
      fmt::format("Defaults of options may stand in {} and in ./{}, by command:\n"
                  "  [judge]\n  threads = 1\n  baseline = \"eager\"\nThe folder's file may set "
                  "baseline, budget, "
                  "quiet, size, threads and verbose alone.",
                  "$XDG_CONFIG_HOME/assay/config.toml (~/.config)", kFolderConfigPath));
}

int RunConfig(const CLI::App& app, const Origins& origins, const ConfigOptions& options) {
  const auto settings = ListSettings(app, origins);
  size_t name_width = 0, value_width = 0;
  for (const Setting& setting : settings) {
    name_width = std::max(name_width, setting.name.size());
    value_width = std::max(value_width, std::min<size_t>(setting.value.size(), 24));
  }
  for (const Setting& setting : settings)
    std::fputs(
        (options.origin ? fmt::format("{:<{}}  {:<{}}  {}\n", setting.name, name_width,
                                      setting.value, value_width, setting.origin)
                        : fmt::format("{:<{}}  {}\n", setting.name, name_width, setting.value))
            .c_str(),
        stdout);
  std::error_code unknown;
  for (const std::string& path : {UserConfigPath().string(), std::string(kFolderConfigPath)})
    if (options.origin)
      std::fputs(fmt::format("# {}: {}\n", path,
                             std::filesystem::exists(path, unknown) ? "read" : "not there")
                     .c_str(),
                 stdout);
  return 0;
}

}  // namespace assay
