// A point in time as people write it. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace assay {

// Returns the seconds since 1970 of "2026-12-01T18:00:00Z"; the seconds may be left out, "Z" may be
// an offset such as "+01:00", and "T" a space. Errors (kUsage): not such a time, or one without a
// zone.
Result<int64_t> ParseMoment(std::string_view text);

// Returns the seconds of "7d", "36h" or "90m". Errors (kUsage): none of these, or over ten years.
Result<int64_t> ParseDuration(std::string_view text);

}  // namespace assay
