#include "base/toml.h"

#include <fmt/format.h>

#include "base/dotted_keys.h"

namespace assay {

Result<toml::table> ParseToml(std::string_view text, const std::string& path) {
  if (const int line = LineWithTooManyDots(text); line > 0)
    return UsageError(fmt::format("{} line {}: more than {} dots; use fewer in a line", path, line,
                                  kLineDotsMax));
  try {
    return toml::table(toml::parse(text, path));
  } catch (const toml::parse_error& error) {
    return UsageError(fmt::format("{} line {}: not TOML: {}: mend the line", path,
                                  error.source().begin.line, error.description()));
  }
}

}  // namespace assay
