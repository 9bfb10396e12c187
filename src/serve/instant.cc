#include "serve/instant.h"

#include <fmt/format.h>
#include <time.h>

#include <cstdio>

#include "base/clock.h"

namespace assay {

Instant InstantNow() { return {static_cast<int64_t>(::time(nullptr)), MonotonicNs() / 1'000'000}; }

std::string UtcText(int64_t utc_s) {
  if (utc_s == 0) return {};
  const time_t seconds = utc_s;
  tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

int64_t UtcSeconds(const std::string& text) {
  tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return end == nullptr || *end != '\0' ? 0 : ::timegm(&parts);
}

}  // namespace assay
