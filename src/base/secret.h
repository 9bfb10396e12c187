// Secrets: random bytes for tokens, and a comparison that tells nothing by its time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay {

// Random bytes of the operating system as lower-case hexadecimal digits. Errors (kEnvironment): it
// gives none.
Result<std::string> RandomHex(size_t bytes);

// Reads all of both texts if they are equally long.
bool IsSameSecret(std::string_view one, std::string_view other);

}  // namespace assay
