// Reads TOML that strangers may have written.
#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// Errors (kUsage) name `path` and the line: not TOML, or keys with more parts than the library can
// bear (dotted_keys.h).
Result<toml::table> ParseToml(std::string_view text, const std::string& path);

}  // namespace assay
