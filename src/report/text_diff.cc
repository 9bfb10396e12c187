#include "report/text_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace assay {
namespace {

constexpr size_t kContext = 3;
constexpr size_t kCellsMax = size_t{1} << 24;  // of the table of common lines

using Lines = std::vector<std::string_view>;

Lines LinesOf(std::string_view text) {
  Lines lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

struct Line {
  char mark;  // ' ', '-' or '+'
  std::string_view text;
};

// The changed middle of both texts, by a longest common subsequence of lines.
void AddMiddle(const Lines& a, const Lines& b, size_t a_begin, size_t a_end, size_t b_begin,
               size_t b_end, std::vector<Line>* lines) {
  const size_t rows = a_end - a_begin, columns = b_end - b_begin;
  size_t i = 0, j = 0;
  if (rows > 0 && columns > 0 && rows <= kCellsMax / columns) {
    const size_t width = columns + 1;
    std::vector<uint32_t> common((rows + 1) * width, 0);  // of what is left from (i, j) on
    for (size_t r = rows; r-- > 0;)
      for (size_t c = columns; c-- > 0;)
        common[r * width + c] =
            a[a_begin + r] == b[b_begin + c]
                ? common[(r + 1) * width + c + 1] + 1
                : std::max(common[(r + 1) * width + c], common[r * width + c + 1]);
    while (i < rows && j < columns) {
      if (a[a_begin + i] == b[b_begin + j]) {
        lines->push_back({' ', a[a_begin + i]});
        ++i, ++j;
      } else if (common[(i + 1) * width + j] >= common[i * width + j + 1]) {
        lines->push_back({'-', a[a_begin + i++]});
      } else {
        lines->push_back({'+', b[b_begin + j++]});
      }
    }
  }
  for (; i < rows; ++i) lines->push_back({'-', a[a_begin + i]});
  for (; j < columns; ++j) lines->push_back({'+', b[b_begin + j]});
}

std::vector<Line> AllLines(const Lines& a, const Lines& b) {
  size_t begin = 0, end = 0;  // lines that both begin and end with
  const size_t shorter = std::min(a.size(), b.size());
  while (begin < shorter && a[begin] == b[begin]) ++begin;
  while (end < shorter - begin && a[a.size() - 1 - end] == b[b.size() - 1 - end]) ++end;
  std::vector<Line> lines;
  for (size_t i = 0; i < begin; ++i) lines.push_back({' ', a[i]});
  AddMiddle(a, b, begin, a.size() - end, begin, b.size() - end, &lines);
  for (size_t i = a.size() - end; i < a.size(); ++i) lines.push_back({' ', a[i]});
  return lines;
}

// "12,3": the first line and how many; of none, the line before.
std::string RangeText(size_t before, size_t count) {
  return count == 1 ? fmt::format("{}", before + 1)
                    : fmt::format("{},{}", count == 0 ? before : before + 1, count);
}

}  // namespace

std::string UnifiedDiff(std::string_view before, std::string_view after,
                        std::string_view name_before, std::string_view name_after) {
  const std::vector<Line> lines = AllLines(LinesOf(before), LinesOf(after));
  const auto changed = [](const Line& line) { return line.mark != ' '; };
  std::string text;
  size_t a_line = 0, b_line = 0;  // lines of each text before `at`
  for (size_t at = 0; at < lines.size();) {
    const auto next = std::find_if(lines.begin() + static_cast<int64_t>(at), lines.end(), changed);
    if (next == lines.end()) break;
    const auto first = static_cast<size_t>(next - lines.begin());
    const size_t begin = std::max(at, first - std::min(first, kContext));
    // The hunk ends where no change follows within twice the context.
    size_t last = first;
    for (size_t i = first; i < lines.size() && i <= last + 2 * kContext; ++i)
      if (changed(lines[i])) last = i;
    const size_t end = std::min(lines.size(), last + kContext + 1);
    a_line += begin - at;
    b_line += begin - at;
    std::string body;
    size_t a_count = 0, b_count = 0;
    for (size_t i = begin; i < end; ++i) {
      body += fmt::format("{}{}\n", lines[i].mark, lines[i].text);
      a_count += lines[i].mark != '+';
      b_count += lines[i].mark != '-';
    }
    if (text.empty()) text = fmt::format("--- {}\n+++ {}\n", name_before, name_after);
    text += fmt::format("@@ -{} +{} @@\n{}", RangeText(a_line, a_count), RangeText(b_line, b_count),
                        body);
    a_line += a_count;
    b_line += b_count;
    at = end;
  }
  return text;
}

}  // namespace assay
