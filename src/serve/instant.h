// The time as the server's rules take it. Tests make their own.
#pragma once

#include <cstdint>
#include <string>

namespace assay {

struct Instant {
  int64_t utc_s = 0;      // since 1970: for records; may be set back by the machine's owner
  int64_t steady_ms = 0;  // never goes back, and means nothing to another process: for leases
};

Instant InstantNow();

// "2026-11-27T02:30:00Z"; empty for 0.
std::string UtcText(int64_t utc_s);
// The seconds since 1970 of such a text; 0 if it is none.
int64_t UtcSeconds(const std::string& text);

}  // namespace assay
