#include "report/text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace assay {
namespace {

constexpr uint32_t kInvalid = 0xFFFFFFFF;

struct Decoded {
  uint32_t point;  // kInvalid for a byte that starts no character
  size_t bytes;
};

// One character of UTF-8; refuses overlong forms, surrogates and what lies beyond Unicode.
Decoded Decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < count) return {kInvalid, 1};
  uint32_t point = first & (0x7Fu >> count);
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {kInvalid, 1};
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  const uint32_t least = count == 4 ? 0x10000 : count == 3 ? 0x800 : 0x80;
  if (point < least || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF))
    return {kInvalid, 1};
  return {point, count};
}

bool Within(uint32_t point, uint32_t first, uint32_t last) {
  return point >= first && point <= last;
}

// Characters that a terminal acts on instead of showing, or that reorder what stands around them.
bool IsHidden(uint32_t point) {
  return point < 0x20 || Within(point, 0x7F, 0x9F) || Within(point, 0x200B, 0x200F) ||
         Within(point, 0x2028, 0x202E) || Within(point, 0x2060, 0x206F) || point == 0xFEFF ||
         point == 0x061C;
}

int Columns(uint32_t point) {
  if (Within(point, 0x0300, 0x036F) || Within(point, 0x20D0, 0x20FF) ||
      Within(point, 0xFE00, 0xFE0F))
    return 0;
  const bool wide = Within(point, 0x1100, 0x115F) || Within(point, 0x2E80, 0xA4CF) ||
                    Within(point, 0xAC00, 0xD7A3) || Within(point, 0xF900, 0xFAFF) ||
                    Within(point, 0xFE30, 0xFE6F) || Within(point, 0xFF00, 0xFF60) ||
                    Within(point, 0xFFE0, 0xFFE6) || Within(point, 0x1F300, 0x1F64F) ||
                    Within(point, 0x1F900, 0x1F9FF) || Within(point, 0x20000, 0x3FFFD);
  return wide ? 2 : 1;
}

// Bytes of the longest start of `text` that takes at most `width` columns.
size_t PrefixBytes(std::string_view text, int width) {
  size_t at = 0;
  int used = 0;
  while (at < text.size()) {
    const Decoded next = Decode(text.substr(at));
    used += Columns(next.point);
    if (used > width) break;
    at += next.bytes;
  }
  return at;
}

}  // namespace

std::string Printable(std::string_view text, bool unicode) {
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    const Decoded next = Decode(text.substr(at));
    if (next.point == '\n' || next.point == '\t' || next.point == '\r') {
      shown += ' ';
    } else if (next.point == kInvalid || IsHidden(next.point) || (!unicode && next.point > 0x7E)) {
      shown += '?';
    } else {
      shown += text.substr(at, next.bytes);
    }
    at += next.bytes;
  }
  return shown;
}

int DisplayWidth(std::string_view text) {
  int width = 0;
  for (size_t at = 0; at < text.size();) {
    const Decoded next = Decode(text.substr(at));
    width += Columns(next.point);
    at += next.bytes;
  }
  return width;
}

std::string Shortened(std::string_view text, int width, bool unicode) {
  if (DisplayWidth(text) <= width) return std::string(text);
  const std::string_view mark = unicode ? "…" : "...";
  const int kept = width - DisplayWidth(mark);
  if (kept <= 0) return std::string(text.substr(0, PrefixBytes(text, width)));
  return std::string(text.substr(0, PrefixBytes(text, kept))) + std::string(mark);
}

std::vector<std::string> Wrapped(std::string_view text, int width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    if (!lines.back().empty() && DisplayWidth(lines.back()) + 1 + DisplayWidth(word) > width)
      lines.emplace_back();
    while (DisplayWidth(word) > width) {
      const size_t part = PrefixBytes(word, width);
      if (part == 0) break;  // one character that is wider than the line
      lines.back() += word.substr(0, part);
      lines.emplace_back();
      word.remove_prefix(part);
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string Repeated(std::string_view piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

std::string FormatDuration(double time_ns) {
  if (!std::isfinite(time_ns) || time_ns < 0) return "?";
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  double value = time_ns;
  // 999.5 shows as 1000 with three digits, so it belongs to the next unit.
  while (unit < 3 && value >= 999.5) {
    value /= 1000;
    ++unit;
  }
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, kUnits[unit]);
}

std::string FormatRatio(double ratio) {
  if (!std::isfinite(ratio) || ratio < 0) return "?";
  if (ratio >= 999'999.5) return fmt::format("{:.2g}x", ratio);
  if (ratio >= 99.95) return fmt::format("{:.0f}x", ratio);
  if (ratio >= 9.995) return fmt::format("{:.1f}x", ratio);
  if (ratio >= 1.0995) return fmt::format("{:.2f}x", ratio);
  if (ratio >= 0.0995) return fmt::format("{:.3f}x", ratio);
  return fmt::format("{:.2g}x", ratio);
}

std::string FormatGain(double factor) {
  if (!std::isfinite(factor) || factor < 1) return "?";
  if (factor >= 2) return FormatRatio(factor);
  const double percent = (factor - 1) * 100;
  return fmt::format("{:.{}f}%", percent, percent >= 9.95 ? 0 : 1);
}

namespace {

// Three significant digits with the largest of the prefixes that leaves at least 1.
std::string WithPrefix(double value, std::string_view unit) {
  constexpr std::string_view kPrefixes[] = {"", "K", "M", "G", "T", "P"};
  size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  const int decimals = prefix == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::string text = fmt::format("{:.{}f} {}{}", value, decimals, kPrefixes[prefix], unit);
  while (text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace

std::string FormatBytes(double bytes) { return WithPrefix(bytes, "B"); }
std::string FormatRate(double a_second, std::string_view unit) {
  return WithPrefix(a_second, unit);
}
std::string FormatCount(double count) { return WithPrefix(count, ""); }

std::string FormatShare(double share) {
  if (!(share >= 0 && share <= 1)) return "?";
  if (share == 1) return "all";
  const double percent = share * 100;
  return percent > 99      ? "over 99%"
         : percent >= 9.95 ? fmt::format("{:.0f}%", percent)
                           : fmt::format("{:.2g}%", percent);
}

std::string Counted(long long count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ShellQuoted(std::string_view argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(argument);
  std::string quoted = "'";
  for (const char letter : argument) {
    if (letter == '\'')
      quoted += "'\\''";
    else
      quoted += letter;
  }
  return quoted + "'";
}

}  // namespace assay
