// The commands about the command line itself: completion, man, config.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/files.h"
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

namespace {

// assay.1, and a page for each command.
Result<void> WriteManual(const CLI::App& app, const std::filesystem::path& folder) {
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / "assay.1", ManualPage(app, kAssayVersion)));
  for (const std::string& command : CommandNames(app)) {
    ASSAY_ASSIGN_OR_RETURN(const std::string page, ManualPageOf(app, kAssayVersion, command));
    ASSAY_RETURN_IF_ERROR(WriteFileAtomically(folder / ("assay-" + command + ".1"), page));
  }
  return {};
}

}  // namespace

int RunManual(const CLI::App& app, const ManOptions& options) {
  if (!options.folder.empty()) {
    const auto written = WriteManual(app, options.folder);
    return written ? 0 : ReportError(written.error());
  }
  const auto page = options.command.empty() ? Result<std::string>(ManualPage(app, kAssayVersion))
                                            : ManualPageOf(app, kAssayVersion, options.command);
  if (!page) return ReportError(page.error());
  std::fputs(page->c_str(), stdout);
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
