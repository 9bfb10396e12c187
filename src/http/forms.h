// The parts of a request: its path and query, forms, cookies. Pure; whatever a peer sends is
// bounded and never an error of the program's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay {

using FieldMap = std::map<std::string, std::string>;  // of names that are repeated the first

// "%41" -> "A"; of a form also '+' -> ' '. nullopt: an escape is broken.
std::optional<std::string> PercentDecoded(std::string_view text, bool form);
std::string PercentEncoded(std::string_view text);

struct SplitTarget {
  std::string path;  // decoded, begins with '/'
  FieldMap query;
};
// nullopt: no target of a server's own ("http://...", "*"), a broken escape, a zero byte, or a part
// of the path that is "." or "..".
std::optional<SplitTarget> ReadTarget(std::string_view target);

// "a=1&b=2". nullopt: a broken escape, or over kFieldsMax fields.
inline constexpr size_t kFieldsMax = 200;
std::optional<FieldMap> ReadForm(std::string_view body);

struct FormPart {
  std::string name;
  std::string file_name;  // empty: no file. The last part of a path that was sent.
  std::string content;
};
// A body of multipart/form-data. Errors (kUsage): it is none, or has over kFieldsMax parts.
Result<std::vector<FormPart>> ReadMultipart(std::string_view content_type, std::string_view body);

// "a=1; b=2".
FieldMap ReadCookies(std::string_view header);

// Matches "/jobs/{id}/events" with a path; {id} takes one part, which is not empty. nullopt: it
// does not match.
std::optional<FieldMap> MatchPath(std::string_view pattern, std::string_view path);

}  // namespace assay
