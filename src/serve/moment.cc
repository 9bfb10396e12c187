#include "serve/moment.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <optional>

namespace assay {
namespace {

using std::chrono::sys_seconds;

constexpr int kMinute = 60, kHour = 3600;
constexpr int64_t kDurationMax = int64_t{3660} * 24 * kHour;
constexpr size_t kShownMax = 40;
constexpr size_t kDateEnd = 10, kMinuteEnd = 16;  // of "2026-12-01T18:00"

// The number that the digits of `text` are, alone.
std::optional<int> Digits(std::string_view text) {
  int number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.front() == '-' || code != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

// "Z", "+02:00": seconds to take off.
std::optional<int> Offset(std::string_view text) {
  if (text == "Z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return {};
  const auto hours = Digits(text.substr(1, 2)), minutes = Digits(text.substr(4, 2));
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return {};
  const int seconds = *hours * kHour + *minutes * kMinute;
  return text[0] == '-' ? -seconds : seconds;
}

std::optional<sys_seconds> Parse(std::string_view text) {
  if (text.size() < kMinuteEnd + 1 || text[4] != '-' || text[7] != '-' || text[13] != ':' ||
      (text[kDateEnd] != 'T' && text[kDateEnd] != ' '))
    return {};
  const auto year = Digits(text.substr(0, 4)), month = Digits(text.substr(5, 2)),
             day = Digits(text.substr(8, 2)), hour = Digits(text.substr(11, 2)),
             minute = Digits(text.substr(14, 2));
  std::string_view rest = text.substr(kMinuteEnd);
  std::optional<int> second = 0;
  if (rest.starts_with(':') && rest.size() >= 3) {
    second = Digits(rest.substr(1, 2));
    rest.remove_prefix(3);
  }
  const auto offset = Offset(rest);
  if (!year || !month || !day || !hour || !minute || !second || !offset) return {};
  const std::chrono::year_month_day date(std::chrono::year{*year},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)});
  if (!date.ok() || *year < 1970 || *hour > 23 || *minute > 59 || *second > 59) return {};
  return std::chrono::sys_days(date) +
         std::chrono::seconds{*hour * kHour + *minute * kMinute + *second - *offset};
}

}  // namespace

Result<int64_t> ParseMoment(std::string_view text) {
  const auto time = Parse(text);
  if (!time)
    return UsageError(fmt::format(
        "\"{}\" is no time with a zone: write it as 2026-12-01T18:00Z, or with an offset as "
        "2026-12-01T18:00+01:00",
        text.substr(0, kShownMax)));
  return time->time_since_epoch().count();
}

Result<int64_t> ParseDuration(std::string_view text) {
  const auto refuse = [&] {
    return UsageError(fmt::format("\"{}\" is no duration: write it as 7d, 36h or 90m",
                                  text.substr(0, kShownMax)));
  };
  if (text.size() < 2) return refuse();
  const auto count = Digits(text.substr(0, text.size() - 1));
  const int64_t unit = text.back() == 'd'   ? int64_t{24} * kHour
                       : text.back() == 'h' ? kHour
                       : text.back() == 'm' ? kMinute
                                            : 0;
  if (!count || *count < 1 || unit == 0 || *count > kDurationMax / unit) return refuse();
  return *count * unit;
}

}  // namespace assay
