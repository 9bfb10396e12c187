// Theory of operation: lines are followed with the state of a lexer, so that text within comments
// and strings is not looked at. A fence or a tag at the begin of a line of code is no code in any
// of the languages. Prose is looked for in the first and the last line of code alone, by marks that
// no code has: in Python two names beside each other, or a quote without its end; in C and C++
// three words that end like a sentence.
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "answer/code_of_answer.h"
#include "answer/text.h"

namespace assay {
namespace {

bool IsPartOfName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}

bool IsKeyword(std::string_view word) {
  constexpr std::string_view kWords[] = {
      "False",  "None",    "True",  "and",      "as",     "assert", "async",  "await",
      "break",  "case",    "class", "continue", "def",    "del",    "elif",   "else",
      "except", "finally", "for",   "from",     "global", "if",     "import", "in",
      "is",     "lambda",  "match", "nonlocal", "not",    "or",     "pass",   "raise",
      "return", "try",     "type",  "while",    "with",   "yield",  "_"};
  return std::ranges::find(kWords, word) != std::end(kWords);
}

// The end of a string or a comment of several lines: "\"\"\"", "*/", ")delimiter\""; empty: the
// line begins in code.
struct Lexer {
  bool python = false;
  std::string end;

  // Goes over a line. Returns its code: comments are left out, and a string is "\"\"".
  // `open_quote`: a string has no end where the line ends.
  std::string Code(std::string_view line, bool* open_quote);

 private:
  // At `at` a string or a comment begins. Returns where it ends, or the line's length.
  size_t Skip(std::string_view line, size_t at, bool* open_quote);
  size_t EndOf(std::string_view line, size_t at, std::string mark);
  bool Begins(std::string_view line, size_t at) const;
};

bool Lexer::Begins(std::string_view line, size_t at) const {
  const std::string_view rest = line.substr(at);
  if (python) return rest[0] == '#' || rest[0] == '"' || rest[0] == '\'';
  // 1'000'000 has no character literals.
  const bool separates = rest[0] == '\'' && at > 0 && IsPartOfName(line[at - 1]);
  return rest[0] == '"' || (rest[0] == '\'' && !separates) || rest.starts_with("//") ||
         rest.starts_with("/*");
}

size_t Lexer::EndOf(std::string_view line, size_t at, std::string mark) {
  for (; at < line.size(); ++at) {
    if (python && line[at] == '\\') {
      ++at;
    } else if (line.substr(at).starts_with(mark)) {
      return at + mark.size();
    }
  }
  end = std::move(mark);
  return line.size();
}

size_t Lexer::Skip(std::string_view line, size_t at, bool* open_quote) {
  const std::string_view rest = line.substr(at);
  if (rest[0] == '#' || rest.starts_with("//")) return line.size();
  if (rest.starts_with("/*")) return EndOf(line, at + 2, "*/");
  const char quote = rest[0];
  const std::string three(3, quote);
  if (python && rest.starts_with(three)) return EndOf(line, at + 3, three);
  if (!python && quote == '"' && at > 0 && line[at - 1] == 'R') {
    const size_t bracket = line.find('(', at);
    if (bracket != std::string_view::npos)
      return EndOf(line, bracket + 1,
                   ")" + std::string(line.substr(at + 1, bracket - at - 1)) + "\"");
  }
  for (size_t i = at + 1; i < line.size(); ++i) {
    if (line[i] == '\\') {
      if (++i >= line.size()) end = std::string(1, quote);  // it goes on in the next line
    } else if (line[i] == quote) {
      return i + 1;
    }
  }
  *open_quote = end.empty();
  return line.size();
}

std::string Lexer::Code(std::string_view line, bool* open_quote) {
  *open_quote = false;
  std::string code;
  size_t at = 0;
  if (!end.empty()) {
    const std::string mark = std::exchange(end, "");
    at = EndOf(line, 0, mark);
    // A quote of one line goes on only behind a backslash.
    if (mark.size() == 1 && !end.empty() && !line.ends_with('\\')) end.clear();
    code += "\"\"";
  }
  while (at < line.size()) {
    if (Begins(line, at)) {
      const bool is_string = line[at] == '"' || line[at] == '\'';
      at = Skip(line, at, open_quote);
      if (is_string) code += "\"\"";
    } else {
      code += line[at++];
    }
  }
  return std::string(Trimmed(code));
}

// Two names beside each other, of which none is a keyword.
bool HasNamesInARow(std::string_view code) {
  bool after_name = false;
  for (size_t at = 0; at < code.size();) {
    if (!IsPartOfName(code[at])) {
      if (code[at] != ' ' && code[at] != '\t') after_name = false;
      ++at;
      continue;
    }
    size_t stop = at;
    while (stop < code.size() && IsPartOfName(code[stop])) ++stop;
    const std::string_view word = code.substr(at, stop - at);
    const bool is_name = std::isdigit(static_cast<unsigned char>(word[0])) == 0 && !IsKeyword(word);
    if (is_name && after_name) return true;
    after_name = is_name;
    at = stop;
  }
  return false;
}

bool IsSentence(std::string_view code) {
  constexpr std::string_view kOpens[] = {"class", "struct", "template", "enum", "union"};
  if (code.empty() || std::string_view(".:!?").find(code.back()) == std::string_view::npos)
    return false;
  if (code.find_first_of("{}=<>\"#\\&;") != std::string_view::npos || code.contains("::"))
    return false;
  const std::string_view first = code.substr(0, code.find(' '));
  return std::ranges::count(code, ' ') >= 2 && std::ranges::find(kOpens, first) == std::end(kOpens);
}

bool IsProse(std::string_view code, bool open_quote, bool python) {
  if (python) return open_quote || HasNamesInARow(code);
  return (open_quote && !code.starts_with('#')) || IsSentence(code) || code.starts_with("##");
}

// A line that no language has where code stands.
bool IsFenceOrTag(std::string_view line) {
  if (line.starts_with("```")) return true;
  const std::string_view rest = line.substr(std::min(line.find_first_not_of('~'), line.size()));
  if (line.starts_with("~~~") && std::ranges::all_of(rest, IsPartOfName)) return true;
  constexpr std::string_view kTags[] = {"<think", "</think", "<reasoning", "</reasoning"};
  return std::ranges::any_of(kTags, [line](std::string_view tag) { return line.starts_with(tag); });
}

}  // namespace

bool IsAnswer(std::string_view text, CodeForm form) {
  Lexer lexer{form == CodeForm::kPython, ""};
  bool seen = false, last_is_prose = false;
  while (!text.empty()) {
    const size_t stop = text.find('\n');
    const std::string_view line = text.substr(0, stop);
    text.remove_prefix(stop == std::string_view::npos ? text.size() : stop + 1);
    const bool begins_in_code = lexer.end.empty();
    if (begins_in_code && IsFenceOrTag(Trimmed(line))) return true;
    bool open_quote = false;
    const std::string code = lexer.Code(line, &open_quote);
    if (code.empty()) continue;
    last_is_prose = begins_in_code && IsProse(code, open_quote, lexer.python);
    if (!seen && (last_is_prose || code.starts_with("**"))) return true;
    seen = true;
  }
  return last_is_prose;
}

}  // namespace assay
