#include "serve/account_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace assay {
namespace {

constexpr size_t kNameBytesMax = 40;

using Range = std::pair<uint32_t, uint32_t>;

// Controls, spaces of other widths, what has no width or changes the direction, fillers, variation
// selectors, private use, and marks that stand over the letter before them.
constexpr std::array<Range, 21> kDoNotShow{{
    {0x0000, 0x001f}, {0x007f, 0x00a0}, {0x00ad, 0x00ad}, {0x0300, 0x036f}, {0x0600, 0x0605},
    {0x061c, 0x061c}, {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800},
    {0x3000, 0x3000}, {0x3164, 0x3164}, {0xd800, 0xf8ff}, {0xfe00, 0xfe2f}, {0xfeff, 0xfeff},
    {0xfff0, 0xffff},
}};
// Letters in other shapes: phonetic, small, raised, circled, wide, mathematical.
constexpr std::array<Range, 13> kLookLikeOthers{{
    {0x0250, 0x02ff},
    {0x1d00, 0x1dbf},
    {0x2070, 0x209f},
    {0x2100, 0x218f},
    {0x2460, 0x24ff},
    {0x2c60, 0x2c7f},
    {0xa720, 0xa7ff},
    {0xab30, 0xab6f},
    {0xfb00, 0xfb06},
    {0xff00, 0xffef},
    {0x1d400, 0x1d7ff},
    {0x1f100, 0x1f1ff},
    {0xe0000, 0x10ffff},
}};
// Alphabets whose letters look alike.
constexpr std::array<std::array<Range, 4>, 5> kAlphabets{{
    {{{'A', 'Z'}, {'a', 'z'}, {0x00c0, 0x024f}, {0x1e00, 0x1eff}}},
    {{{0x0370, 0x03ff}, {0x1f00, 0x1fff}, {0x2c80, 0x2cff}, {}}},
    {{{0x0400, 0x052f}, {0x1c80, 0x1c8f}, {0x2de0, 0x2dff}, {0xa640, 0xa69f}}},
    {{{0x0530, 0x058f}, {}, {}, {}}},
    {{{0x13a0, 0x13ff}, {0xab70, 0xabbf}, {}, {}}},
}};
// Letters of Greek and Cyrillic, and the Latin ones that they look like.
constexpr std::u32string_view kOthers =
    U"аАвВсСеЕнНіІјЈкКмМоОрРѕЅтТуУхХԁԛԝһҺӏӀ"
    U"αΑβΒεΕζΖηΗιΙκΚμΜνΝοΟρΡτΤυΥχΧγϲϹ";
constexpr std::string_view kLatin =
    "aabbcceehhiljjkkmmooppssttyyxxdqwhhll"
    "aabbeezznhilkkumvnooppttuyxxycc";
static_assert(kOthers.size() == kLatin.size());

template <size_t kCount>
bool IsIn(const std::array<Range, kCount>& ranges, uint32_t point) {
  return std::ranges::any_of(ranges, [&](const Range& range) {
    return point >= range.first && point <= range.second && point != 0;
  });
}

// Of text that is UTF-8.
std::vector<uint32_t> PointsOf(const std::string& text) {
  std::vector<uint32_t> points;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0) == 0x80)
      points.back() = (points.back() << 6) | (byte & 0x3f);
    else
      points.push_back(byte < 0x80   ? byte
                       : byte < 0xe0 ? byte & 0x1f
                       : byte < 0xf0 ? byte & 0x0f
                                     : byte & 0x07);
  }
  return points;
}

Result<void> CheckLooks(const std::vector<uint32_t>& points) {
  std::set<size_t> alphabets;
  for (const uint32_t point : points) {
    if (point == 0 || IsIn(kDoNotShow, point))
      return UsageError("the name has characters that do not show: use letters, digits and spaces");
    if (IsIn(kLookLikeOthers, point))
      return UsageError("the name has characters that look like others: use ordinary letters");
    for (size_t i = 0; i < kAlphabets.size(); ++i)
      if (IsIn(kAlphabets[i], point)) alphabets.insert(i);
  }
  if (alphabets.size() > 1)
    return UsageError("the name has letters of several alphabets that look alike: use one of them");
  return {};
}

}  // namespace

Result<void> CheckAccountName(const std::string& name) {
  if (name.empty()) return UsageError("a name is missing: choose one");
  if (name.size() > kNameBytesMax)
    return UsageError(
        fmt::format("the name is over {} bytes: choose a shorter one", kNameBytesMax));
  if (!IsUtf8(name) || name.front() == ' ' || name.back() == ' ' || name.contains("  "))
    return UsageError("the name has characters that do not show: use letters, digits and spaces");
  return CheckLooks(PointsOf(name));
}

namespace {

// Of capitals of Latin, Greek and Cyrillic the small letter.
uint32_t SmallLetter(uint32_t point) {
  const bool is_capital = (point >= 'A' && point <= 'Z') || (point >= 0x00c0 && point <= 0x00de) ||
                          (point >= 0x0391 && point <= 0x03a9) ||
                          (point >= 0x0410 && point <= 0x042f);
  if (is_capital) return point + 0x20;
  return point >= 0x0400 && point <= 0x040f ? point + 0x50 : point;
}

}  // namespace

std::string SkeletonOfName(const std::string& name) {
  std::string skeleton;
  for (const uint32_t point : PointsOf(name)) {
    const size_t other = kOthers.find(static_cast<char32_t>(point));
    if (other != std::u32string_view::npos)
      skeleton += kLatin[other];
    else if (point == 'I' || point == '1' || point == '|')
      skeleton += 'l';
    else if (point == '0')
      skeleton += 'o';
    else if (point < 0x80)
      skeleton += static_cast<char>(SmallLetter(point));
    else
      skeleton += fmt::format("<{:x}>", SmallLetter(point));
  }
  return skeleton;
}

}  // namespace assay
