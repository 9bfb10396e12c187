// What a compiler says of itself.
#pragma once

#include <string>

#include "base/result.h"

namespace assay {

// The first 4 KiB that `PATH --version` prints, in a clean environment. Errors (kEnvironment): it
// does not start, or says nothing within ten seconds.
Result<std::string> ReadVersionText(const std::string& path);

}  // namespace assay
