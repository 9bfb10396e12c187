#include "http/back_off.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/trimmed.h"

namespace assay {

double BackOffSeconds(const BackOff& terms, int attempt, uint64_t random) {
  double wait = terms.first_s;
  for (int i = 1; i < attempt && wait < terms.max_s; ++i) wait *= 2;
  const double share = 0.5 + 0.5 * static_cast<double>(random >> 11) / 9007199254740992.0;
  return std::min(wait, terms.max_s) * share;
}

std::optional<double> ParseRetryAfter(std::string_view text, int64_t now_unix_s) {
  text = Trimmed(text);
  double seconds = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), seconds, std::chars_format::fixed);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && !text.empty())
    return seconds >= 0 ? std::optional(seconds) : std::nullopt;
  const time_t then = ::curl_getdate(std::string(text).c_str(), nullptr);
  if (then < 0) return std::nullopt;
  return static_cast<double>(std::max<int64_t>(0, int64_t{then} - now_unix_s));
}

}  // namespace assay
