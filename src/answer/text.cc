#include "answer/text.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace assay {
namespace {

constexpr std::string_view kTags[] = {"think", "thinking", "reasoning"};

struct Tag {
  size_t begin = std::string_view::npos, end = std::string_view::npos;
  std::string_view name;
  bool closes = false;
  bool found() const { return begin != std::string_view::npos; }
};

// The first tag at or after `from`, of `name` alone if that is not empty.
Tag NextTag(std::string_view text, size_t from, std::string_view name) {
  for (size_t at = text.find('<', from); at != std::string_view::npos;
       at = text.find('<', at + 1)) {
    const bool closes = at + 1 < text.size() && text[at + 1] == '/';
    const std::string_view after = text.substr(at + 1 + (closes ? 1 : 0));
    for (const std::string_view known : kTags)
      if ((name.empty() || name == known) && after.starts_with(known) &&
          after.substr(known.size()).starts_with('>'))
        return {at, at + (closes ? 3 : 2) + known.size(), known, closes};
  }
  return {};
}

}  // namespace

std::string MendUtf8(std::string text) {
  if (IsUtf8(text)) return text;
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

SplitText SplitReasoning(std::string_view text) {
  SplitText split;
  const auto add = [&split](std::string_view reasoning) {
    reasoning = Trimmed(reasoning);
    if (!split.reasoning.empty() && !reasoning.empty()) split.reasoning += '\n';
    split.reasoning += reasoning;
  };
  size_t at = 0;
  bool first = true;
  for (Tag tag = NextTag(text, 0, ""); tag.found(); tag = NextTag(text, at, "")) {
    if (tag.closes) {
      if (first) {
        add(text.substr(0, tag.begin));
      } else {
        split.rest += text.substr(at, tag.end - at);  // no part of any reasoning
      }
      at = tag.end;
    } else {
      split.rest += text.substr(at, tag.begin - at);
      size_t depth = 1, inner = tag.end;
      Tag end;
      while (depth > 0 && (end = NextTag(text, inner, tag.name)).found()) {
        depth += end.closes ? size_t{0} - 1 : 1;
        inner = end.end;
      }
      add(text.substr(tag.end, (end.found() ? end.begin : text.size()) - tag.end));
      at = end.found() ? end.end : text.size();
    }
    first = false;
  }
  split.rest += text.substr(at);
  return split;
}

}  // namespace assay
