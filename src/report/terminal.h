// The abilities of the stream that people look at.
#pragma once

#include <functional>
#include <string>

#include "report/frame.h"

namespace assay {

// Reads one environment variable; empty when it is not set.
using EnvironmentLookup = std::function<std::string(const char* name)>;
std::string EnvironmentVariable(const char* name);  // the process's own

struct Terminal {
  bool interactive = false;  // a terminal that can redraw a line: not a file, not TERM=dumb
  bool colour = false;       // interactive, and NO_COLOR is not set
  bool unicode = false;  // the locale is UTF-8 (off a terminal too: files are read on terminals)
  int width = 80;        // columns
};

// `fd` is the stream's descriptor. Never fails: what cannot be learned is assumed absent.
Terminal DetectTerminal(int fd, const EnvironmentLookup& environment = EnvironmentVariable);

CardStyle CardStyleFor(const Terminal& terminal);

}  // namespace assay
