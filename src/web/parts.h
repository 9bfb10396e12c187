// Pieces that several pages share: tables, badges, bars, figures. Pure.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/verdict.h"
#include "serve/types.h"
#include "web/html.h"

namespace assay {

struct Column {
  std::string name;
  // CSS classes: "n" for numbers, "name", "why"; may be empty.
  std::string_view kind = {};
};

// A table in which the first cell of each row names it. On a phone its rows stand as blocks, each
// cell after its column's name.
class PageTable {
 public:
  PageTable(std::string_view label, std::vector<Column> columns, bool narrow = false);
  // As many cells as columns.
  void Row(std::initializer_list<Html> cells) { AddRow({cells.begin(), cells.size()}); }
  void AddRow(std::span<const Html> cells);
  bool empty() const { return rows_.empty(); }
  Html End() const;

 private:
  std::string label_;
  std::vector<Column> columns_;
  bool narrow_;
  Html rows_;
};

// The word of an outcome with its sign: colour is not alone.
Html OutcomeBadge(std::string_view outcome_name);
Html RoleTag(Role role);  // "human" or "machine"
// A runner's name; marked if it is the author's own, whose word has no rank.
Html RunnerText(std::string_view runner, bool is_own);
Html TimeText(std::string_view iso);  // "2026-11-27 12:30" UTC
Html DayText(std::string_view iso);   // "2026-11-27"
Html Tile(std::string_view name, const Html& value, const Html& more);
Html Tiles(const Html& tiles);
Html FactRow(std::string_view name, const Html& value);  // of a <dl>; empty where the value is
Html Facts(const Html& facts);
Html FactsInTwo(const Html& facts);  // in two columns where there is room
Html Heading(std::string_view text);
Html Paragraph(std::string_view text, std::string_view kind = {});
Html Fold(std::string_view summary, const Html& content, bool open = false);
// A block of code that scrolls and can be reached by the keyboard.
Html CodeBlock(std::string_view label, const Html& code, std::string_view kind = {});
// A command to copy.
Html Command(std::string_view command);
// A picture that scrolls where it is too wide.
Html Figure(std::string_view label, const std::string& svg);
// A part of a page that a script fetches anew while it is shown; a page has one.
Html Refreshed(const Html& part, int seconds);
Html ProblemLink(std::string_view problem);
std::string FormText(const CandidateRecord& candidate);  // "native, cpp"
Html VerdictLink(std::string_view id, std::string_view text = {});

// The scale of bars in one table: logarithmic for ratios, so that half and twice are equally far
// from 1.
struct BarScale {
  double from = 0, to = 1;
  double mark = 0;  // of the line across all bars; outside of the scale: none
  bool logarithmic = false;

  double At(double value, double width) const;
};
// Holds all of these ratios and 1.
BarScale RatioScale(std::span<const double> ratios);
// An interval with its value as a bar, for a cell; `text` stands beside it.
Html IntervalBar(double low, double value, double high, const BarScale& scale,
                 std::string_view text);

// "2.51x"; "-" where it is none.
std::string RatioOrDash(double ratio);
// "2.48x to 2.54x", or empty.
std::string RangeText(double low, double high);

// The side that decided a verdict; null without gate 2.
const BaselineResult* HeadlineOf(const Verdict& verdict);

}  // namespace assay
