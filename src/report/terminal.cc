#include "report/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

namespace assay {
namespace {

// The locale's character set as the environment names it: LC_ALL beats LC_CTYPE beats LANG.
bool LocaleIsUtf8(const EnvironmentLookup& environment) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value = environment(name);
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    return value.find("UTF-8") != std::string::npos || value.find("UTF8") != std::string::npos;
  }
  return false;
}

}  // namespace

std::string EnvironmentVariable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

Terminal DetectTerminal(int fd, const EnvironmentLookup& environment) {
  Terminal terminal;
  const std::string kind = environment("TERM");
  terminal.interactive = ::isatty(fd) == 1 && !kind.empty() && kind != "dumb";
  terminal.colour = terminal.interactive && environment("NO_COLOR").empty();
  terminal.unicode = LocaleIsUtf8(environment);
  winsize size{};
  if (terminal.interactive && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = std::clamp<int>(size.ws_col, 20, 500);
  return terminal;
}

CardStyle CardStyleFor(const Terminal& terminal) {
  // Cards keep to 80 columns on wider terminals too: lines of prose read best so.
  return {terminal.colour, terminal.unicode, std::min(terminal.width, 80)};
}

}  // namespace assay
