// Asks a compiler for its version.
#pragma once

#include <string>

#include "base/result.h"

namespace assay {

// Returns the first 4 KiB of the output of `PATH --version`, run in a clean environment. Errors
// (kEnvironment): it does not start, or prints nothing within ten seconds.
Result<std::string> ReadVersionText(const std::string& path);

}  // namespace assay
