#include "base/clock.h"

#include <fmt/chrono.h>

#include <chrono>

namespace assay {

std::string UtcTimestamp() {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(seconds));
}

}  // namespace assay
