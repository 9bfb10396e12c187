// A box of text with a title, sections and rows, in colour or without, in box-drawing characters or
// in ASCII.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay {

// How to draw for people. Meaning never rests on colour alone.
struct CardStyle {
  bool colour = false;
  bool unicode = true;
  int width = 80;     // columns of the whole card; held within 60 to 100
  bool saved = true;  // the verdict is kept, so that its id is known later
  bool here = true;   // it was judged on a machine of the reader's
};

enum class Tone {
  kPlain,
  kStrong,
  kFaint,
  kGood,
  kBad,
  kWarning,
  kGoodBadge,
  kBadBadge,
  kWarningBadge
};

struct TextSpan {
  std::string text;  // printable, without control characters
  Tone tone = Tone::kPlain;
};
using Line = std::vector<TextSpan>;

// The characters that differ between Unicode and ASCII terminals.
struct Glyphs {
  const char* horizontal;
  const char* vertical;
  const char* top_left;
  const char* top_right;
  const char* left_join;
  const char* right_join;
  const char* bottom_left;
  const char* bottom_right;
  const char* bar;
  const char* half_bar;  // empty where there is none
  const char* dot;       // between parts of a title
};
const Glyphs& GlyphsOf(const CardStyle& style);

// Text with its tone as SGR codes, or bare where the style has no colour.
std::string Painted(const TextSpan& span, const CardStyle& style);

// Builds one box from top to bottom. Every row fits the width: what is longer is shortened, with a
// mark.
class Frame {
 public:
  explicit Frame(CardStyle style);
  const CardStyle& style() const { return style_; }
  int inner_width() const { return style_.width - 6; }  // columns of a row's content

  void Top(const std::string& left, const std::string& right) {
    Rule(0, left, {right, Tone::kStrong});
  }
  void Section(const std::string& left, const TextSpan& right) { Rule(1, left, right); }
  void Bottom() { Rule(2, "", {}); }
  void Row(Line line);
  void Blank() { Row({}); }
  // Prose over as many rows as it takes.
  void Prose(const std::string& text, Tone tone);
  // "label   value": the value wrapped, its further rows below its first.
  void Labelled(std::string_view label, const std::string& value, Tone tone = Tone::kPlain);

  static constexpr int kLabelWidth = 13;
  std::string Take() { return std::move(text_); }

 private:
  void Rule(int kind, const std::string& left, const TextSpan& right);

  CardStyle style_;
  std::string text_;
};

}  // namespace assay
