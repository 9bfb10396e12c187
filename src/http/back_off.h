// The time to wait before a server is asked again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay {

struct BackOff {
  double first_s = 1;  // doubles with each attempt
  double max_s = 60;
};

// Returns the seconds to wait after the attempt, counted from 1. `random` spreads callers that
// failed together.
double BackOffSeconds(const BackOff& terms, int attempt, uint64_t random);

// Returns the seconds to wait from now on, by a Retry-After header: a number or an HTTP date.
std::optional<double> ParseRetryAfter(std::string_view text, int64_t now_unix_s);

}  // namespace assay
