#include "answer/apply_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace assay {
namespace {

using Lines = std::vector<std::string_view>;

constexpr size_t kEditsMax = 1000;
constexpr size_t kShownBytesMax = 120;

Lines LinesOf(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string_view WithoutEndBlanks(std::string_view line) {
  const size_t last = line.find_last_not_of(" \t");
  return line.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

struct Edit {
  Lines before, after;
  size_t line = 0;  // where it says that it applies, from 1; 0: it does not say
};

// The old line number of "@@ -12,3 +12,4 @@"; 0: none.
size_t HunkLine(std::string_view header) {
  const size_t minus = header.find('-');
  size_t line = 0;
  if (minus != std::string_view::npos)
    std::from_chars(header.data() + minus + 1, header.data() + header.size(), line);
  return line;
}

bool IsHunkHeader(std::string_view line) { return line.starts_with("@@"); }
bool IsSearch(std::string_view line) {
  return line.starts_with("<<<<<<<") && line.find("SEARCH") != std::string_view::npos;
}
bool IsReplaceEnd(std::string_view line) { return line.starts_with(">>>>>>>"); }
// Of a diff, beside its hunks.
bool IsFileHeader(const Lines& lines, size_t at) {
  return (lines[at].starts_with("--- ") && at + 1 < lines.size() &&
          lines[at + 1].starts_with("+++ ")) ||
         (lines[at].starts_with("+++ ") && at > 0 && lines[at - 1].starts_with("--- ")) ||
         lines[at].starts_with("diff --git ") || lines[at].starts_with("index ");
}

// Reads a hunk's lines from `at` on, and moves it behind them.
Edit ReadHunk(const Lines& lines, size_t& at) {
  Edit edit;
  edit.line = HunkLine(lines[at++]);
  for (; at < lines.size() && !IsHunkHeader(lines[at]) && !IsFileHeader(lines, at); ++at) {
    const std::string_view line = lines[at];
    if (line.starts_with("\\ No newline")) continue;
    if (line.starts_with('-')) {
      edit.before.push_back(line.substr(1));
    } else if (line.starts_with('+')) {
      edit.after.push_back(line.substr(1));
    } else {
      // Models lose the blank of an empty context line.
      const std::string_view same = line.starts_with(' ') ? line.substr(1) : line;
      edit.before.push_back(same);
      edit.after.push_back(same);
    }
  }
  return edit;
}

// Drops the last line if the edit keeps it: prose of the answer, perhaps, or context that is wrong.
// Returns false if what is left could stand anywhere.
bool DropEndLine(Edit& edit) {
  if (edit.before.empty() || edit.after.empty() || edit.before.back() != edit.after.back())
    return false;
  edit.before.pop_back();
  edit.after.pop_back();
  return std::ranges::any_of(edit.before,
                             [](std::string_view line) { return !WithoutEndBlanks(line).empty(); });
}

// nullopt: it has no end.
std::optional<Edit> ReadSearch(const Lines& lines, size_t& at) {
  Edit edit;
  for (++at; at < lines.size() && !lines[at].starts_with("======="); ++at)
    edit.before.push_back(lines[at]);
  for (++at; at < lines.size() && !IsReplaceEnd(lines[at]); ++at) edit.after.push_back(lines[at]);
  if (at >= lines.size()) return std::nullopt;
  ++at;
  return edit;
}

bool StandsAt(const std::vector<std::string>& source, size_t at, const Lines& lines) {
  if (at + lines.size() > source.size()) return false;
  for (size_t i = 0; i < lines.size(); ++i)
    if (WithoutEndBlanks(source[at + i]) != WithoutEndBlanks(lines[i])) return false;
  return true;
}

// The place nearest to `wanted` (from 0) at which the lines stand.
std::optional<size_t> PlaceOf(const std::vector<std::string>& source, const Lines& lines,
                              size_t wanted) {
  std::optional<size_t> best;
  const auto distance = [wanted](size_t at) { return at > wanted ? at - wanted : wanted - at; };
  for (size_t at = 0; at + lines.size() <= source.size(); ++at)
    if (StandsAt(source, at, lines) && (!best || distance(at) < distance(*best))) best = at;
  return best;
}

bool Apply(std::vector<std::string>& source, Edit& edit, std::ptrdiff_t& shift) {
  const auto wanted = static_cast<size_t>(
      std::max<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(edit.line) - 1 + shift));
  std::optional<size_t> place;
  if (edit.before.empty()) {
    // An insertion without context: at its line, or at the end of an empty source.
    place = edit.line > 0 || source.empty() ? std::optional(std::min(wanted, source.size()))
                                            : std::nullopt;
  } else {
    place = PlaceOf(source, edit.before, wanted);
    while (!place && DropEndLine(edit)) place = PlaceOf(source, edit.before, wanted);
  }
  if (!place) return false;
  const auto from = source.begin() + static_cast<std::ptrdiff_t>(*place);
  const auto at = source.erase(from, from + static_cast<std::ptrdiff_t>(edit.before.size()));
  source.insert(at, edit.after.begin(), edit.after.end());
  shift += static_cast<std::ptrdiff_t>(edit.after.size()) -
           static_cast<std::ptrdiff_t>(edit.before.size());
  return true;
}

}  // namespace

bool LooksLikeEdits(std::string_view text) {
  bool has_header = false, has_change = false;
  for (const std::string_view line : LinesOf(text)) {
    if (IsSearch(line)) return true;
    if (IsHunkHeader(line)) has_header = true;
    if (has_header && (line.starts_with('+') || line.starts_with('-'))) has_change = true;
  }
  return has_header && has_change;
}

std::expected<std::string, std::string> ApplyEdits(std::string_view source,
                                                   std::string_view edits) {
  std::vector<std::string> result;
  for (const std::string_view line : LinesOf(source)) result.emplace_back(line);
  const Lines lines = LinesOf(edits);
  size_t number = 0;
  std::ptrdiff_t shift = 0;
  for (size_t at = 0; at < lines.size();) {
    Edit edit;
    if (IsSearch(lines[at])) {
      auto read = ReadSearch(lines, at);
      if (!read) return std::unexpected("The last SEARCH block has no '>>>>>>> REPLACE' line.");
      edit = *std::move(read);
    } else if (IsHunkHeader(lines[at])) {
      edit = ReadHunk(lines, at);
    } else {
      if (lines[at].starts_with("--- /dev/null")) result.clear();  // the whole file, as an addition
      ++at;
      continue;
    }
    if (++number > kEditsMax)
      return std::unexpected(fmt::format("More than {} edits: give the whole file.", kEditsMax));
    if (!Apply(result, edit, shift))
      return std::unexpected(fmt::format(
          "Edit {} does not fit the source: these lines are not in it, one after the other, "
          "beginning with '{}'. Give the whole file.",
          number, edit.before.empty() ? "" : edit.before.front().substr(0, kShownBytesMax)));
  }
  if (number == 0) return std::unexpected("The answer has no edit.");
  std::string text;
  for (const std::string& line : result) text.append(line).push_back('\n');
  return text;
}

}  // namespace assay
