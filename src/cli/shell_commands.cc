// The commands about the command line itself: completion, man, config.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/version.h"
#include "cli/completion.h"
#include "cli/config.h"
#include "cli/options.h"

namespace assay {

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
