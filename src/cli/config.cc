#include "cli/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/files.h"
#include "base/toml.h"
#include "cli/options.h"
#include "problem/nearest.h"

namespace assay {
namespace {

constexpr size_t kConfigBytesMax = 1 << 20;

std::string Line(const std::string& path, const toml::node& node) {
  return fmt::format("{} line {}", path, node.source().begin.line);
}

// Options that a file may set: those with a long name and a value or flag to keep, but for
// --help and --version.
std::vector<CLI::Option*> Settable(const CLI::App& command) {
  std::vector<CLI::Option*> options;
  for (CLI::Option* option : const_cast<CLI::App&>(command).get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || names[0] == "help" || names[0] == "version") continue;
    if (names[0] == kAllowWeakSandbox) continue;  // said anew each time, or not at all
    options.push_back(option);
  }
  return options;
}

std::vector<CLI::App*> Commands(CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

Result<std::string> Text(const std::string& path, const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return UsageError(
      fmt::format("{}: a setting is a string, a number, true or false", Line(path, node)));
}

constexpr std::array<std::string_view, 6> kFolderOptions{"baseline", "budget",  "quiet",
                                                         "size",     "threads", "verbose"};

Result<void> ApplyOne(const std::string& path, std::string_view name, const toml::node& node,
                      CLI::App& command, Origins* origins) {
  const bool allowed =
      path != kFolderConfigPath ||
      std::find(kFolderOptions.begin(), kFolderOptions.end(), name) != kFolderOptions.end();
  std::vector<std::string> known;
  for (CLI::Option* option : Settable(command)) {
    known.push_back(option->get_lnames()[0]);
    if (known.back() != name) continue;
    if (!allowed)
      return UsageError(fmt::format(
          "{}: a folder's own file may not set '{}': move it to {}. It may set {}",
          Line(path, node), name, UserConfigPath().string(), fmt::join(kFolderOptions, ", ")));
    ASSAY_ASSIGN_OR_RETURN(const std::string text, Text(path, node));
    try {
      option->run_callback_for_default();
      option->default_val(text);
    } catch (const CLI::Error& error) {
      return UsageError(fmt::format("{}: {}", Line(path, node), error.what()));
    }
    (*origins)[fmt::format("{}.{}", command.get_name(), name)] = Line(path, node);
    return {};
  }
  return UsageError(fmt::format("{}: assay {} has no option --{}{}", Line(path, node),
                                command.get_name(), name, Suggestion(name, known)));
}

Result<void> ApplyFile(const std::string& path, CLI::App& app, Origins* origins) {
  ASSAY_ASSIGN_OR_RETURN(const std::string content, ReadFile(path, kConfigBytesMax));
  ASSAY_ASSIGN_OR_RETURN(const toml::table table, ParseToml(content, path));
  std::vector<std::string> known;
  for (const CLI::App* command : Commands(app)) known.push_back(command->get_name());
  for (const auto& [name, node] : table) {
    const auto commands = Commands(app);
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* each) {
      return each->get_name() == name.str();
    });
    if (found == commands.end() || !node.is_table())
      return UsageError(
          fmt::format("{}: put settings below the name of a command, such as [judge]{}",
                      Line(path, node), Suggestion(name.str(), known)));
    for (const auto& [option, value] : *node.as_table())
      ASSAY_RETURN_IF_ERROR(ApplyOne(path, option.str(), value, **found, origins));
  }
  return {};
}

}  // namespace

std::filesystem::path UserConfigPath() {
  if (const char* folder = std::getenv("XDG_CONFIG_HOME"); folder != nullptr && *folder == '/')
    return std::filesystem::path(folder) / "assay" / "config.toml";
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/") / ".config" / "assay" / "config.toml";
}

Result<Origins> ApplyConfigFiles(CLI::App& app) {
  Origins origins;
  std::error_code unknown;
  for (const std::string& path : {UserConfigPath().string(), std::string(kFolderConfigPath)})
    if (std::filesystem::exists(path, unknown))
      ASSAY_RETURN_IF_ERROR(ApplyFile(path, app, &origins));
  return origins;
}

std::vector<Setting> ListSettings(const CLI::App& app, const Origins& origins) {
  std::vector<Setting> settings;
  for (const CLI::App* command : Commands(const_cast<CLI::App&>(app))) {
    for (const CLI::Option* option : Settable(*command)) {
      const std::string name = fmt::format("{}.{}", command->get_name(), option->get_lnames()[0]);
      const auto origin = origins.find(name);
      settings.push_back(
          {name, option->get_default_str(), origin != origins.end() ? origin->second : "built in"});
    }
  }
  return settings;
}

}  // namespace assay
