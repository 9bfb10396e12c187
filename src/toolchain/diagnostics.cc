// Makes one clear sentence of a compiler's output. The candidate can shape that output (#error,
// #pragma message, names of symbols), so it is bounded and stripped of bytes that a terminal obeys.
// It decides nothing.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "toolchain/build.h"
#include "toolchain/packed_folder.h"

namespace assay {
namespace {

constexpr size_t kLinesMax = 4096;
constexpr size_t kMessageBytesMax = 300;

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Plain quotes, no escape sequences, no control bytes.
std::string Clean(std::string_view line) {
  std::string clean;
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte == 0x1b) {
      if (i + 1 < line.size() && line[i + 1] == '[') {
        for (i += 2; i < line.size() && (line[i] < '@' || line[i] > '~'); ++i) {
        }
      }
    } else if (byte == '\t') {
      clean += ' ';
    } else if (byte >= 0x20 && byte != 0x7f) {
      clean += line[i];
    }
  }
  ReplaceAll(clean, "\u2018", "'");
  ReplaceAll(clean, "\u2019", "'");
  return clean;
}

std::vector<std::string> Lines(std::string_view output) {
  std::vector<std::string> lines;
  while (!output.empty() && lines.size() < kLinesMax) {
    const size_t end = output.find('\n');
    lines.push_back(Clean(output.substr(0, end)));
    output.remove_prefix(end == std::string_view::npos ? output.size() : end + 1);
  }
  return lines;
}

std::string Bounded(std::string message) {
  if (message.size() <= kMessageBytesMax) return message;
  size_t end = kMessageBytesMax;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80) --end;
  return message.substr(0, end) + "...";
}

// Messages name files as the sandbox shows them; their folders say nothing to the candidate's
// author.
std::string WithoutFolders(std::string message) {
  ReplaceAll(message, kFilesFolder, "");
  ReplaceAll(message, kCandidateFolder, "");
  ReplaceAll(message, "/assay/include/", "");
  return message;
}

struct Location {
  std::string file;
  int line = 0;
  size_t length = 0;  // of "FILE:LINE[:COLUMN]" in the text
};

int TakeNumber(std::string_view text, size_t* at) {
  int value = 0;
  const size_t start = *at;
  while (*at < text.size() && *at - start < 7 && text[*at] >= '0' && text[*at] <= '9')
    value = value * 10 + (text[(*at)++] - '0');
  return *at == start ? 0 : value;
}

// "FILE(LINE):" at the start of the text: CUDA's compilers.
std::optional<Location> LocationInBrackets(std::string_view text) {
  size_t at = text.find('(');
  if (at == std::string_view::npos || at == 0 || text.substr(0, at).find(' ') != text.npos)
    return std::nullopt;
  const std::string_view file = text.substr(0, at++);
  const int line = TakeNumber(text, &at);
  if (line == 0 || text.substr(at, 2) != "):") return std::nullopt;
  return Location{std::string(file), line, at + 1};
}

// "FILE:LINE", "FILE:LINE:COLUMN" or "FILE(LINE)" at the start of the text.
std::optional<Location> LocationAt(std::string_view text) {
  if (auto found = LocationInBrackets(text)) return found;
  for (size_t colon = text.find(':'); colon != std::string_view::npos;
       colon = text.find(':', colon + 1)) {
    size_t at = colon + 1;
    const int line = TakeNumber(text, &at);
    if (line == 0 || colon == 0) continue;
    if (text.substr(0, colon).find(' ') != std::string_view::npos) return std::nullopt;
    if (at < text.size() && text[at] == ':') {
      size_t column_end = at + 1;
      if (TakeNumber(text, &column_end) != 0) at = column_end;
    }
    return Location{std::string(text.substr(0, colon)), line, at};
  }
  return std::nullopt;
}

// "at line 12 of FILE", where FILE begins at `file_at`: CUDA's compilers, of templates.
std::optional<Location> LocationInWords(std::string_view line, size_t file_at) {
  constexpr std::string_view kLine = "at line ", kOf = " of ";
  const size_t words = line.rfind(kLine, file_at);
  if (words == std::string_view::npos) return std::nullopt;
  size_t at = words + kLine.size();
  const int number = TakeNumber(line, &at);
  if (number == 0 || line.substr(at, kOf.size()) != kOf) return std::nullopt;
  return Location{std::string(line.substr(file_at)), number, 0};
}

// The candidate's line that a message about another file mentions: "/candidate/a.cpp:7:12: required
// from here", or, where `included` is asked for, "In file included from /candidate/a.cpp:3:".
// `candidate`: how its path begins.
std::optional<Location> MentionOfCandidate(std::string_view line, std::string_view candidate,
                                           bool included) {
  const size_t at = line.find(candidate);
  if (at == std::string_view::npos) return std::nullopt;
  if (const auto found = LocationInWords(line, at); found && !included) return found;
  const bool is_inclusion = line.find("ncluded from") < at || line.starts_with("    ");
  if (is_inclusion != included) return std::nullopt;
  return LocationAt(line.substr(at));
}

struct LocatedError {
  Location location;
  std::string message;
};

std::optional<LocatedError> ErrorOnLine(const std::string& line) {
  const auto location = LocationAt(line);
  if (!location) return std::nullopt;
  const std::string_view rest = std::string_view(line).substr(location->length);
  for (std::string_view mark : {": error: ", ": fatal error: ", ": internal compiler error: ",
                                ": catastrophic error: ", ": error #"}) {
    if (!rest.starts_with(mark)) continue;
    std::string message(rest.substr(mark.size()));
    // ": error #77-D: this declaration ..."
    if (mark.ends_with('#'))
      message = message.substr(std::min(message.find(' '), message.size() - 1) + 1);
    if (mark.find("internal") != std::string_view::npos)
      message = "internal compiler error: " + message;
    return LocatedError{*location, message};
  }
  return std::nullopt;
}

// An error in a header is the doing of a line of the candidate's: g++ names it before the error,
// clang++ after it.
std::string Located(const std::vector<std::string>& lines, size_t index, const LocatedError& error,
                    std::string_view candidate) {
  if (error.location.file.starts_with(candidate))
    return fmt::format("line {}: {}", error.location.line, error.message);
  // Where NVRTC looks up the kernels that the launch lines name.
  if (error.location.file == "__nv_name_map")
    return fmt::format("a kernel that is launched is not there: {}", error.message);
  const std::string file = error.location.file.substr(error.location.file.rfind('/') + 1);
  std::optional<Location> mention;
  for (size_t i = index; i > 0 && !mention; --i)
    mention = MentionOfCandidate(lines[i - 1], candidate, false);
  for (size_t i = index + 1; i < lines.size() && !mention && !ErrorOnLine(lines[i]); ++i)
    mention = MentionOfCandidate(lines[i], candidate, false);
  for (size_t i = index; i > 0 && !mention; --i)
    mention = MentionOfCandidate(lines[i - 1], candidate, true);
  if (!mention) return fmt::format("{} line {}: {}", file, error.location.line, error.message);
  return fmt::format("line {}: {} (in {}, line {})", mention->line, error.message, file,
                     error.location.line);
}

// A linker's complaint: the symbol, and the function that needs it where it is said.
std::optional<std::string> LinkerError(const std::string& line) {
  for (std::string_view phrase :
       {"undefined reference to ", "multiple definition of ", "undefined symbol: "}) {
    const size_t at = line.find(phrase);
    if (at == std::string::npos) continue;
    std::string symbol = line.substr(at + phrase.size());
    symbol = symbol.substr(0, symbol.find("; "));
    symbol.erase(
        std::remove_if(symbol.begin(), symbol.end(), [](char c) { return c == '`' || c == '\''; }),
        symbol.end());
    std::string_view said = phrase;
    if (said.ends_with(": ")) said = "undefined reference to ";
    return fmt::format("{}'{}'", said, symbol);
  }
  const size_t missing = line.find("cannot find -l");
  if (missing != std::string::npos) {
    const std::string what = line.substr(missing);
    return "the linker " + what.substr(0, what.find(": "));
  }
  return std::nullopt;
}

// "g++: error: ...", "cc1plus: error: ...", "clang: error: ...": without the tool's name. Kept for
// last where it only says that another program failed.
std::optional<std::string> ToolError(const std::string& line) {
  if (line.starts_with("error: ")) return line.substr(line.find(' ') + 1);
  for (std::string_view mark : {": fatal error: ", ": error: "}) {
    const size_t at = line.find(mark);
    if (at == std::string::npos || line.substr(0, at).find(' ') != std::string::npos) continue;
    return line.substr(at + mark.size());
  }
  return std::nullopt;
}

// "ptxas error   : Entry function ...", "nvcc fatal   : Unsupported gpu architecture ...", "ptxas
// /tmp/x.ptx, line 12; error   : ...".
std::optional<std::string> CudaToolError(const std::string& line) {
  for (std::string_view tool : {"ptxas", "nvcc", "nvlink"}) {
    if (!line.starts_with(tool) || line.substr(tool.size(), 1) != " ") continue;
    for (std::string_view mark : {"error   : ", "fatal   : "}) {
      const size_t at = line.find(mark);
      if (at != std::string::npos)
        return fmt::format("{}: {}", tool, line.substr(at + mark.size()));
    }
  }
  return std::nullopt;
}

bool IsAftermath(const std::string& message) {
  return message.find("ld returned") != std::string::npos ||
         message.find("linker command failed") != std::string::npos;
}

bool IsBlank(const std::string& text) { return text.find_first_not_of(' ') == std::string::npos; }

bool IsRemark(const std::string& line) {
  return line.find("warning: ") != std::string::npos ||
         line.find(": warning #") != std::string::npos || line.find("note: ") != std::string::npos;
}

}  // namespace

std::string FirstDiagnostic(std::string_view compiler_output, std::string_view entry) {
  const std::vector<std::string> lines = Lines(compiler_output);
  const std::string_view candidate = entry.empty() ? kCandidateFolder : entry;
  std::string first_line, first_remark;  // where no line is an error
  for (size_t i = 0; i < lines.size(); ++i) {
    std::string found;
    if (const auto error = ErrorOnLine(lines[i])) {
      found = Located(lines, i, *error, candidate);
    } else if (auto linker = LinkerError(lines[i])) {
      found = *std::move(linker);
    } else if (auto cuda = CudaToolError(lines[i])) {
      found = *std::move(cuda);
    } else if (auto tool = ToolError(lines[i]); tool && !IsAftermath(*tool)) {
      found = *std::move(tool);
    }
    // What says nothing without its folders says nothing.
    found = WithoutFolders(std::move(found));
    if (!IsBlank(found)) return Bounded(std::move(found));
    const std::string line = WithoutFolders(lines[i]);
    std::string& kept = IsRemark(lines[i]) ? first_remark : first_line;
    if (IsBlank(kept)) kept = line;
  }
  if (IsBlank(first_line)) first_line = std::move(first_remark);
  if (IsBlank(first_line)) return "the compiler failed and said nothing";
  return Bounded(std::move(first_line));
}

bool LacksHeader(std::string_view compiler_output) {
  for (const std::string& line : Lines(compiler_output)) {
    const auto error = ErrorOnLine(line);
    if (!error) continue;
    const std::string& message = error->message;
    return message.ends_with(": No such file or directory") ||
           message.ends_with("' file not found") ||
           message.starts_with("cannot open source file ") ||
           message.starts_with("could not open source file ");
  }
  return false;
}

int LineOfMessage(std::string_view message) {
  constexpr std::string_view kLine = "line ";
  size_t at = kLine.size();
  const int line = message.starts_with(kLine) ? TakeNumber(message, &at) : 0;
  return message.substr(std::min(at, message.size())).starts_with(": ") ? line : 0;
}

std::vector<CompilerError> CompilerErrors(std::string_view compiler_output, size_t most) {
  const std::vector<std::string> lines = Lines(compiler_output);
  std::vector<CompilerError> errors;
  for (size_t i = 0; i < lines.size() && errors.size() < most; ++i) {
    const auto error = ErrorOnLine(lines[i]);
    if (!error) continue;
    const std::string located = WithoutFolders(Located(lines, i, *error, kCandidateFolder));
    const int line = LineOfMessage(located);
    if (line == 0) continue;
    CompilerError found{line, Bounded(located.substr(located.find(": ") + 2))};
    const bool known = std::any_of(errors.begin(), errors.end(), [&](const CompilerError& other) {
      return other.line == found.line && other.message == found.message;
    });
    if (!known) errors.push_back(std::move(found));
  }
  return errors;
}

}  // namespace assay
