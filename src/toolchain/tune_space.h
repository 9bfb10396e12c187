// The values that a candidate leaves open: its `//! tune` lines, and the `//! require` lines that
// say which of them go together. Pure.
//
//   //! tune    ROWS = 4 1 2 8
//   //! tune    BLOCK = 64 128
//   //! require BLOCK % ROWS == 0
//
// A build takes the first value of each line. A variant is the same source with one value a line.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct TuneLine {
  int line = 0;
  std::string name;  // a macro, and a name in expressions
  std::vector<int64_t> values;
};

// LEFT COMPARISON RIGHT; the sides are expressions over the tuned names (size_expression.h).
struct TuneRule {
  int line = 0;
  std::string left, comparison, right;
};

struct TuneSpace {
  std::vector<TuneLine> tunes;
  std::vector<TuneRule> rules;
};

// The place of the chosen value in each line.
using TunePoint = std::vector<size_t>;

inline constexpr size_t kTunesMax = 16;
inline constexpr size_t kTuneValuesMax = 64;

// Parses the text after `//! tune`. The error does not name the line.
std::expected<TuneLine, std::string> ParseTuneLine(int line, std::string_view text);

// The error names the line. A source without tune lines has one point: none are chosen.
std::expected<TuneSpace, std::string> ParseTuneSpace(std::string_view source,
                                                     std::string_view language);

// The number of points, those that the rules forbid included; at most 2^62.
uint64_t CountPoints(const TuneSpace& space);

// The value of each name at this point.
std::map<std::string, int64_t> ValuesAt(const TuneSpace& space, const TunePoint& point);

// Returns true if all rules hold at this point. A rule that cannot be evaluated does not hold.
bool Allows(const TuneSpace& space, const TunePoint& point);

// The source with one value in each tune line. `space` is that of the source.
std::string WriteVariant(std::string_view source, const TuneSpace& space, const TunePoint& point);

// "ROWS=4 BLOCK=64".
std::string DescribePoint(const TuneSpace& space, const TunePoint& point);

}  // namespace assay
