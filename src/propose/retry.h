// Decides, after an attempt at a paid service that brought no answer, whether another one is of
// use, and when. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {

struct RetryTerms {
  int attempts_max = 6;
  int broken_max = 3;       // attempts whose answers broke off or cannot be read
  double wait_s_first = 1;  // doubles with each attempt
  double wait_s_max = 60;
  double retry_after_s_max = 120;  // a service that asks for more is given up
};

// Returns the seconds to wait from now on, by a Retry-After header: a number or an HTTP date.
std::optional<double> ParseRetryAfter(std::string_view text, int64_t now_unix_s);

// Returns the seconds to wait after the attempt, counted from 1. `random` spreads callers that
// failed together.
double BackOffSeconds(const RetryTerms& terms, int attempt, uint64_t random);

// The error that a service's reply tells of, as far as it is in the usual form.
struct ServiceError {
  std::string message, type;
};
ServiceError ReadServiceError(std::string_view body);

enum class Remedy {
  kRetry,       // the service is busy, or has failed: later it may work
  kFixRequest,  // the same for every prompt: a wrong key, an unknown model, no credit
  kFixPrompt,   // this prompt is refused, such as one that is too long
};
Remedy RemedyOf(int status, const ServiceError& error);

}  // namespace assay
