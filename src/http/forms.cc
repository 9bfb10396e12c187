#include "http/forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace assay {
namespace {

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// The parts between separators; an empty text has one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The value of a parameter of a header: of boundary in `multipart/form-data; boundary="x"`.
std::string ParameterOf(std::string_view header, std::string_view name) {
  size_t at = header.find(';');
  while (at != std::string_view::npos) {
    std::string_view rest = Trimmed(header.substr(at + 1));
    const size_t equals = rest.find('=');
    if (equals == std::string_view::npos) return {};
    const bool found = Lower(Trimmed(rest.substr(0, equals))) == name;
    rest = Trimmed(rest.substr(equals + 1));
    std::string value;
    if (rest.starts_with('"')) {
      size_t i = 1;
      for (; i < rest.size() && rest[i] != '"'; ++i) {
        if (rest[i] == '\\' && i + 1 < rest.size() && rest[i + 1] == '"') ++i;
        value += rest[i];
      }
      rest.remove_prefix(std::min(i + 1, rest.size()));
    } else {
      value = std::string(Trimmed(rest.substr(0, rest.find(';'))));
    }
    if (found) return value;
    const size_t next = rest.find(';');
    if (next == std::string_view::npos) return {};
    at = static_cast<size_t>(rest.data() - header.data()) + next;
  }
  return {};
}

std::string FileNameOf(const std::string& sent) {
  const size_t slash = sent.find_last_of("/\\");
  return slash == std::string::npos ? sent : sent.substr(slash + 1);
}

}  // namespace

std::optional<std::string> PercentDecoded(std::string_view text, bool form) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && form) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      const int high = i + 1 < text.size() ? DigitOf(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? DigitOf(text[i + 2]) : -1;
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(16 * high + low);
      i += 2;
    }
  }
  return decoded;
}

std::string PercentEncoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' ||
                       c == '.' || c == '~';
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

std::optional<SplitTarget> ReadTarget(std::string_view target) {
  if (!target.starts_with('/')) return std::nullopt;
  target = target.substr(0, target.find('#'));
  const size_t question = target.find('?');
  const std::string_view path = target.substr(0, question);
  SplitTarget split;
  for (const std::string_view part : Split(path.substr(1), '/')) {
    const auto decoded = PercentDecoded(part, false);
    if (!decoded || *decoded == "." || *decoded == ".." ||
        decoded->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      return std::nullopt;
    split.path += "/" + *decoded;
  }
  if (question == std::string_view::npos) return split;
  auto query = ReadForm(target.substr(question + 1));
  if (!query) return std::nullopt;
  split.query = std::move(*query);
  return split;
}

std::optional<FieldMap> ReadForm(std::string_view body) {
  FieldMap fields;
  size_t count = 0;
  for (const std::string_view pair : Split(body, '&')) {
    if (pair.empty()) continue;
    if (++count > kFieldsMax) return std::nullopt;
    const size_t equals = pair.find('=');
    const auto name = PercentDecoded(pair.substr(0, equals), true);
    const auto value = equals == std::string_view::npos
                           ? std::optional<std::string>("")
                           : PercentDecoded(pair.substr(equals + 1), true);
    if (!name || !value) return std::nullopt;
    fields.emplace(*name, *value);
  }
  return fields;
}

Result<std::vector<FormPart>> ReadMultipart(std::string_view content_type, std::string_view body) {
  if (!Lower(content_type).starts_with("multipart/form-data"))
    return UsageError("the body is no form");
  const std::string boundary = ParameterOf(content_type, "boundary");
  if (boundary.empty() || boundary.size() > 70) return UsageError("the form has no boundary");
  const std::string mark = "--" + boundary;
  if (!body.starts_with(mark)) return UsageError("the form is broken: send it again");
  std::vector<FormPart> parts;
  size_t at = mark.size();
  while (true) {
    if (body.substr(at).starts_with("--")) return parts;
    const size_t header_end = body.find("\r\n\r\n", at);
    if (!body.substr(at).starts_with("\r\n") || header_end == std::string_view::npos)
      return UsageError("the form is broken: send it again");
    const size_t end = body.find("\r\n" + mark, header_end + 2);
    if (end == std::string_view::npos) return UsageError("the form is cut off: send it again");
    if (parts.size() >= kFieldsMax) return UsageError("the form has too many fields");
    FormPart part;
    for (const std::string_view line : Split(body.substr(at + 2, header_end - at - 2), '\n')) {
      if (!Lower(line).starts_with("content-disposition:")) continue;
      part.name = ParameterOf(line, "name");
      part.file_name = FileNameOf(ParameterOf(line, "filename"));
    }
    const size_t begin = header_end + 4;
    if (end >= begin) part.content = std::string(body.substr(begin, end - begin));
    parts.push_back(std::move(part));
    at = end + 2 + mark.size();
  }
}

FieldMap ReadCookies(std::string_view header) {
  FieldMap cookies;
  for (const std::string_view pair : Split(header, ';')) {
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos || cookies.size() >= kFieldsMax) continue;
    cookies.emplace(Trimmed(pair.substr(0, equals)), Trimmed(pair.substr(equals + 1)));
  }
  return cookies;
}

std::optional<FieldMap> MatchPath(std::string_view pattern, std::string_view path) {
  const auto wanted = Split(pattern, '/'), given = Split(path, '/');
  if (wanted.size() != given.size()) return std::nullopt;
  FieldMap captures;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].starts_with('{') && wanted[i].ends_with('}')) {
      if (given[i].empty()) return std::nullopt;
      captures.emplace(wanted[i].substr(1, wanted[i].size() - 2), given[i]);
    } else if (wanted[i] != given[i]) {
      return std::nullopt;
    }
  }
  return captures;
}

}  // namespace assay
