// Settings files: defaults of options, by command. Lowest first: what is built in, the user's file
// ($XDG_CONFIG_HOME/assay/config.toml), the working folder's assay.toml; the command line stands
// above all. A folder may come from anywhere, so its file sets no more than kFolderOptions: nothing
// that names a program to run, and nothing that makes a gate easier.
//
//   [judge]
//   threads = 1
//   baseline = "eager"
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
}

namespace assay {

std::filesystem::path UserConfigPath();
inline constexpr const char* kFolderConfigPath = "assay.toml";

// The origin of an option's value, by "command.option".
using Origins = std::map<std::string, std::string>;

// Reads both files and makes their values the options' defaults. Errors (kUsage) name the file, the
// line, and an unknown command or option with the nearest one.
Result<Origins> ApplyConfigFiles(CLI::App& app);

// One setting as it stands: "judge.threads", its value as text, and where it comes from.
struct Setting {
  std::string name, value, origin;
};
std::vector<Setting> ListSettings(const CLI::App& app, const Origins& origins);

}  // namespace assay
