// Decides, after an attempt at a paid service that brought no answer, whether another one is of
// use, and when. Pure.
#pragma once

#include <string>
#include <string_view>

#include "http/back_off.h"

namespace assay {

struct RetryTerms {
  int attempts_max = 6;
  int broken_max = 3;  // attempts whose answers broke off or cannot be read
  BackOff wait;
  double retry_after_s_max = 120;  // a service that asks for more is given up
};

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
