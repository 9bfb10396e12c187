#include "report/frame.h"

#include <algorithm>

#include "report/text.h"

namespace assay {
namespace {

constexpr Glyphs kUnicode{"─", "│", "┌", "┐", "├", "┤", "└", "┘", "█", "▌", "·"};
constexpr Glyphs kAscii{"-", "|", "+", "+", "+", "+", "+", "+", "#", "", "/"};

const char* Codes(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kStrong:
      return "1";
    case Tone::kFaint:
      return "2";
    case Tone::kGood:
      return "32";
    case Tone::kBad:
      return "31";
    case Tone::kWarning:
      return "33";
    case Tone::kGoodBadge:
      return "1;7;32";
    case Tone::kBadBadge:
      return "1;7;31";
    case Tone::kWarningBadge:
      return "1;7;33";
  }
  return "";
}

int WidthOf(const Line& line) {
  int width = 0;
  for (const TextSpan& span : line) width += DisplayWidth(span.text);
  return width;
}

// Shortens from the end until the line fits.
void Fit(Line& line, int width, bool unicode) {
  int used = 0;
  for (TextSpan& span : line) {
    span.text = Shortened(span.text, width - used, unicode);
    used += DisplayWidth(span.text);
  }
}

}  // namespace

const Glyphs& GlyphsOf(const CardStyle& style) { return style.unicode ? kUnicode : kAscii; }

std::string Painted(const TextSpan& span, const CardStyle& style) {
  const std::string codes = Codes(span.tone);
  if (!style.colour || codes.empty() || span.text.empty()) return span.text;
  return "\x1b[" + codes + "m" + span.text + "\x1b[0m";
}

Frame::Frame(CardStyle style) : style_(style) { style_.width = std::clamp(style_.width, 60, 100); }

void Frame::Row(Line line) {
  Fit(line, inner_width(), style_.unicode);
  const std::string side = Painted({GlyphsOf(style_).vertical, Tone::kFaint}, style_);
  text_ += side + "  ";
  for (const TextSpan& span : line) text_ += Painted(span, style_);
  text_ += std::string(static_cast<size_t>(inner_width() - WidthOf(line) + 2), ' ') + side + '\n';
}

void Frame::Prose(const std::string& text, Tone tone) {
  for (const std::string& line : Wrapped(text, inner_width())) Row({{line, tone}});
}

void Frame::Labelled(std::string_view label, const std::string& value, Tone tone) {
  std::string lead(label);
  lead.resize(kLabelWidth, ' ');
  for (const std::string& line : Wrapped(value, inner_width() - kLabelWidth)) {
    Row({{lead, Tone::kFaint}, {line, tone}});
    lead.assign(kLabelWidth, ' ');
  }
}

void Frame::Rule(int kind, const std::string& left, const TextSpan& right) {
  const Glyphs& glyphs = GlyphsOf(style_);
  const char* const starts[] = {glyphs.top_left, glyphs.left_join, glyphs.bottom_left};
  const char* const ends[] = {glyphs.top_right, glyphs.right_join, glyphs.bottom_right};
  // The right title keeps a third of the width at most, the left one what remains.
  const TextSpan end{Shortened(right.text, style_.width / 3, style_.unicode), right.tone};
  const int end_width = end.text.empty() ? 0 : DisplayWidth(end.text) + 2;
  const std::string start = Shortened(left, style_.width - 8 - end_width, style_.unicode);
  const int start_width = start.empty() ? 0 : DisplayWidth(start) + 2;
  const auto faint = [&](const std::string& text) { return Painted({text, Tone::kFaint}, style_); };
  text_ += faint(std::string(starts[kind]) + glyphs.horizontal);
  if (!start.empty()) text_ += " " + Painted({start, Tone::kStrong}, style_) + " ";
  text_ += faint(Repeated(glyphs.horizontal, style_.width - 4 - start_width - end_width));
  if (!end.text.empty()) text_ += " " + Painted(end, style_) + " ";
  text_ += faint(std::string(glyphs.horizontal) + ends[kind]) + '\n';
}

}  // namespace assay
