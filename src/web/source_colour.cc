#include "web/source_colour.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "report/text_diff.h"

namespace assay {
namespace {

// Sorted. CUDA's words and the fixed-width types stand among C++'s.
constexpr std::array kCppWords = {"__device__",
                                  "__forceinline__",
                                  "__global__",
                                  "__host__",
                                  "__launch_bounds__",
                                  "__restrict__",
                                  "__shared__",
                                  "alignas",
                                  "alignof",
                                  "asm",
                                  "auto",
                                  "bool",
                                  "break",
                                  "case",
                                  "catch",
                                  "char",
                                  "class",
                                  "const",
                                  "const_cast",
                                  "constexpr",
                                  "continue",
                                  "decltype",
                                  "default",
                                  "delete",
                                  "do",
                                  "double",
                                  "else",
                                  "enum",
                                  "explicit",
                                  "extern",
                                  "false",
                                  "float",
                                  "float4",
                                  "for",
                                  "friend",
                                  "half",
                                  "if",
                                  "inline",
                                  "int",
                                  "int32_t",
                                  "int64_t",
                                  "long",
                                  "namespace",
                                  "new",
                                  "noexcept",
                                  "nullptr",
                                  "operator",
                                  "private",
                                  "public",
                                  "reinterpret_cast",
                                  "requires",
                                  "return",
                                  "short",
                                  "signed",
                                  "size_t",
                                  "sizeof",
                                  "static",
                                  "static_assert",
                                  "static_cast",
                                  "struct",
                                  "switch",
                                  "template",
                                  "this",
                                  "thread_local",
                                  "throw",
                                  "true",
                                  "try",
                                  "typename",
                                  "uint32_t",
                                  "uint64_t",
                                  "uint8_t",
                                  "union",
                                  "unsigned",
                                  "using",
                                  "virtual",
                                  "void",
                                  "volatile",
                                  "while"};
constexpr std::array kPythonWords = {
    "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
    "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
    "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
    "or",    "pass",     "raise", "return", "self", "try",    "while",  "with",     "yield"};

template <typename Words>
bool Has(const Words& words, std::string_view word) {
  return std::binary_search(words.begin(), words.end(), word,
                            [](std::string_view a, std::string_view b) { return a < b; });
}

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }
bool IsWord(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_' ||
         IsDigit(letter);
}

// Reads a source from its begin to its end, token by token.
class Lexer {
 public:
  Lexer(std::string_view source, SourceLanguage language) : source_(source), language_(language) {}

  std::vector<Html> Lines() {
    while (at_ < source_.size()) Token();
    lines_.push_back(std::move(line_));
    if (lines_.back().empty() && lines_.size() > 1) lines_.pop_back();  // after the last break
    return std::move(lines_);
  }

 private:
  std::string_view Rest() const { return source_.substr(at_); }

  // Takes text up to `end`, line by line, with a class.
  void Take(size_t end, std::string_view kind) {
    end = std::min(end, source_.size());
    while (at_ < end) {
      const size_t stop = std::min(source_.find('\n', at_), end);
      if (stop > at_) {
        const std::string_view piece = source_.substr(at_, stop - at_);
        line_ += kind.empty() ? Text(piece) : Markup("<span class=\"{}\">{}</span>", kind, piece);
        begun_ = begun_ || piece.find_first_not_of(" \t\r") != std::string_view::npos;
      }
      at_ = stop;
      if (at_ < end) {
        lines_.push_back(std::move(line_));
        line_ = {};
        begun_ = false;
        ++at_;
      }
    }
  }

  // The place after `close`, which is searched from `from` on; the source's end where it is not.
  size_t After(std::string_view close, size_t from) const {
    const size_t found = source_.find(close, from);
    return found == std::string_view::npos ? source_.size() : found + close.size();
  }
  size_t EndOfLine(size_t from) const { return std::min(source_.find('\n', from), source_.size()); }

  // The end of a string that opens at `from` with one quote: on its line, past escapes.
  size_t EndOfString(size_t from) const {
    const char quote = source_[from];
    for (size_t at = from + 1; at < source_.size(); ++at) {
      if (source_[at] == '\\')
        ++at;
      else if (source_[at] == quote)
        return at + 1;
      else if (source_[at] == '\n')
        return at;
    }
    return source_.size();
  }

  size_t EndOfWord(size_t from) const {
    while (from < source_.size() && IsWord(source_[from])) ++from;
    return from;
  }

  // A preprocessor line, with the lines that a backslash adds to it.
  size_t EndOfDirective() const {
    size_t end = EndOfLine(at_);
    while (end > at_ && end < source_.size() && source_[end - 1] == '\\') end = EndOfLine(end + 1);
    return end;
  }

  size_t EndOfNumber() const {
    size_t end = at_;
    while (end < source_.size() &&
           (IsWord(source_[end]) || source_[end] == '.' ||
            (source_[end] == '\'' && language_ == SourceLanguage::kCpp &&
             end + 1 < source_.size() && IsWord(source_[end + 1])) ||
            ((source_[end] == '-' || source_[end] == '+') &&
             (source_[end - 1] == 'e' || source_[end - 1] == 'E' || source_[end - 1] == 'p') &&
             !source_.substr(at_, 2).starts_with("0x"))))
      ++end;
    return std::max(end, at_ + 1);
  }

  bool CppToken() {
    const std::string_view rest = Rest();
    if (rest.starts_with("//")) return Take(EndOfLine(at_), "t-c"), true;
    if (rest.starts_with("/*")) return Take(After("*/", at_ + 2), "t-c"), true;
    if (rest.front() == '#' && !begun_) return Take(EndOfDirective(), "t-p"), true;
    if (rest.starts_with("R\"")) {
      const size_t open = source_.find('(', at_);
      if (open != std::string_view::npos && open - at_ <= 18) {
        const std::string close = ")" + std::string(source_.substr(at_ + 2, open - at_ - 2)) + "\"";
        return Take(After(close, open), "t-s"), true;
      }
    }
    return false;
  }

  bool PythonToken() {
    const std::string_view rest = Rest();
    if (rest.front() == '#') return Take(EndOfLine(at_), "t-c"), true;
    if (rest.front() == '@' && !begun_) return Take(EndOfWord(at_ + 1), "t-p"), true;
    for (const std::string_view quotes : {"\"\"\"", "'''"})
      if (rest.starts_with(quotes)) return Take(After(quotes, at_ + 3), "t-s"), true;
    return false;
  }

  void Token() {
    const char letter = source_[at_];
    if (language_ == SourceLanguage::kPlain) return Take(source_.size(), "");
    if (language_ == SourceLanguage::kCpp ? CppToken() : PythonToken()) return;
    if (letter == '"' || letter == '\'') return Take(EndOfString(at_), "t-s");
    if (IsDigit(letter)) return Take(EndOfNumber(), "t-n");
    if (IsWord(letter)) {
      const size_t end = EndOfWord(at_);
      const std::string_view word = source_.substr(at_, end - at_);
      const bool is_keyword =
          language_ == SourceLanguage::kCpp ? Has(kCppWords, word) : Has(kPythonWords, word);
      return Take(end, is_keyword ? "t-k" : "");
    }
    // All up to the next token in one piece.
    size_t end = at_ + 1;
    while (end < source_.size() && !IsWord(source_[end]) &&
           std::string_view("\"'/#@\n").find(source_[end]) == std::string_view::npos)
      ++end;
    Take(end, "");
  }

  std::string_view source_;
  SourceLanguage language_;
  size_t at_ = 0;
  bool begun_ = false;  // something other than blanks stands on this line
  Html line_;
  std::vector<Html> lines_;
};

// The two numbers of "@@ -12,7 +14 @@".
std::pair<size_t, size_t> HunkBegins(std::string_view line) {
  const auto number = [&](char mark) {
    size_t value = 1;
    const size_t at = line.find(mark, 2);
    if (at != std::string_view::npos)
      std::from_chars(line.data() + at + 1, line.data() + line.size(), value);
    return std::max<size_t>(value, 1);
  };
  return {number('-'), number('+')};
}

}  // namespace

SourceLanguage LanguageOf(std::string_view file_name) {
  const size_t dot = file_name.rfind('.');
  const std::string_view ending = dot == std::string_view::npos ? "" : file_name.substr(dot);
  if (ending == ".py") return SourceLanguage::kPython;
  for (const std::string_view each : {".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp"})
    if (ending == each) return SourceLanguage::kCpp;
  return SourceLanguage::kPlain;
}

std::vector<Html> ColouredLines(std::string_view source, SourceLanguage language) {
  return Lexer(source, language).Lines();
}

Html ColouredSource(std::string_view source, SourceLanguage language) {
  Html html;
  for (const Html& line : ColouredLines(source, language)) html += Markup("<span>{}</span>", line);
  return html;
}

Html ColouredDiff(std::string_view before, std::string_view after, SourceLanguage language) {
  const std::string diff = UnifiedDiff(before, after, "before", "after");
  const std::vector<Html> old_lines = ColouredLines(before, language),
                          new_lines = ColouredLines(after, language);
  const auto line_of = [](const std::vector<Html>& lines, size_t number) {
    return number - 1 < lines.size() ? lines[number - 1] : Html();
  };
  Html html;
  size_t old_number = 1, new_number = 1;
  bool in_hunk = false;
  for (size_t at = 0; at < diff.size();) {
    const size_t end = std::min(diff.find('\n', at), diff.size());
    const std::string_view line = std::string_view(diff).substr(at, end - at);
    at = end + 1;
    if (line.starts_with("@@")) {
      in_hunk = true;
      std::tie(old_number, new_number) = HunkBegins(line);
      html += Markup("<span class=\"hunk\">{}</span>", line);
    } else if (in_hunk && line.starts_with('+')) {
      html += Markup("<span class=\"add\">+{}</span>", line_of(new_lines, new_number++));
    } else if (in_hunk && line.starts_with('-')) {
      html += Markup("<span class=\"cut\">-{}</span>", line_of(old_lines, old_number++));
    } else if (in_hunk && line.starts_with(' ')) {
      html += Markup("<span> {}</span>", line_of(new_lines, new_number++));
      ++old_number;
    }
  }
  return html;
}

}  // namespace assay
