// Text for terminals: widths in columns, wrapping, numbers with sensible units. What foreign
// programs printed passes through Printable before a person sees it. Pure; no errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The text safe to show on one line: line breaks and tabs become spaces; control characters, bytes
// that are not UTF-8 and characters that change the direction of writing become '?' (so do all
// beyond ASCII where unicode is false).
std::string Printable(std::string_view text, bool unicode);

// Columns that UTF-8 text takes: wide East Asian characters take two, combining marks none.
int DisplayWidth(std::string_view text);

// The text cut to at most `width` columns, its end replaced by "..." (one column "…" where unicode)
// when it was longer.
std::string Shortened(std::string_view text, int width, bool unicode);

// Lines of at most `width` columns, broken at spaces; a word longer than a line is broken inside.
// Never empty.
std::vector<std::string> Wrapped(std::string_view text, int width);

std::string Repeated(std::string_view piece, int count);

// Three significant digits: "812 ns", "12.3 us", "1.60 ms", "2.51 s"; "?" for what is not a time.
std::string FormatDuration(double time_ns);
// "2.51x", "1.003x", "0.314x", "48.2x", "123x"; "?" for what is not a ratio.
std::string FormatRatio(double ratio);
// A factor as a gain: 1.016 is "1.6%", 2.1 is "2.10x".
std::string FormatGain(double factor);
// "812 B", "16.8 MB", "1.07 GB"; of counts "10.5 M", "2.15 G".
std::string FormatBytes(double bytes);
std::string FormatCount(double count);
// "13.1 GB/s", "4.27 TB/s", "727 TFLOP/s": three significant digits.
std::string FormatRate(double a_second, std::string_view unit);
// Shares of a whole: "12%", "0.024%", "all" for 1.
std::string FormatShare(double share);
// "1 pair", "9 pairs".
std::string Counted(long long count, std::string_view noun);

// The argument as a POSIX shell reads it back: quoted where it must be.
std::string ShellQuoted(std::string_view argument);

}  // namespace assay
