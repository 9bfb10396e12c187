#include "worklog/prose.h"

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "report/text.h"

namespace assay {
namespace {

constexpr int kOptions = CMARK_OPT_VALIDATE_UTF8;  // without CMARK_OPT_UNSAFE
constexpr int kHeadingLevel = 3;

struct FreeNode {
  void operator()(cmark_node* node) const { cmark_node_free(node); }
};
struct FreeParser {
  void operator()(cmark_parser* parser) const { cmark_parser_free(parser); }
};
struct FreeText {
  void operator()(char* text) const { std::free(text); }
};
struct FreeIterator {
  void operator()(cmark_iter* iterator) const { cmark_iter_free(iterator); }
};

std::string CaseLess(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// A page by http or mail, or a place in this one or beside it.
bool IsAllowed(std::string_view url) {
  for (const std::string_view scheme : {"http://", "https://", "mailto:"})
    if (url.size() > scheme.size() && CaseLess(url.substr(0, scheme.size())) == scheme) return true;
  if (url.starts_with("//") || url.find('\\') != std::string_view::npos) return false;
  return url.substr(0, url.find_first_of("/?#")).find_first_of(":%") == std::string_view::npos &&
         std::ranges::none_of(url, [](char c) { return static_cast<unsigned char>(c) <= ' '; });
}

// Pages have a title and section headings of their own; pictures would be loaded from elsewhere.
void Level(cmark_node* root) {
  const std::unique_ptr<cmark_iter, FreeIterator> iterator(cmark_iter_new(root));
  for (cmark_event_type event = cmark_iter_next(iterator.get()); event != CMARK_EVENT_DONE;
       event = cmark_iter_next(iterator.get())) {
    cmark_node* const node = cmark_iter_get_node(iterator.get());
    if (cmark_node_get_type(node) == CMARK_NODE_HEADING)
      cmark_node_set_heading_level(node, kHeadingLevel);
    if (cmark_node_get_type(node) == CMARK_NODE_IMAGE) cmark_node_set_url(node, "");
    if (cmark_node_get_type(node) == CMARK_NODE_LINK && !IsAllowed(cmark_node_get_url(node)))
      cmark_node_set_url(node, "");
  }
}

// Characters that do not show, or that turn the direction of writing, become '?'. References such
// as &#x202E; are characters only in the HTML.
std::string Shown(std::string_view html) {
  std::string shown;
  for (size_t at = 0; at < html.size();) {
    const size_t end = std::min(html.find_first_of("\n\t", at), html.size());
    shown += Printable(html.substr(at, end - at), true);
    if (end < html.size()) shown += html[end];
    at = end + 1;
  }
  return shown;
}

}  // namespace

std::string ProseHtml(std::string_view markdown) {
  if (markdown.empty()) return {};
  const bool cut = markdown.size() > kProseShownMax;
  cmark_gfm_core_extensions_ensure_registered();
  const std::unique_ptr<cmark_parser, FreeParser> parser(cmark_parser_new(kOptions));
  if (cmark_syntax_extension* table = cmark_find_syntax_extension("table"))
    cmark_parser_attach_syntax_extension(parser.get(), table);
  const std::string_view shown = markdown.substr(0, kProseShownMax);
  cmark_parser_feed(parser.get(), shown.data(), shown.size());
  const std::unique_ptr<cmark_node, FreeNode> root(cmark_parser_finish(parser.get()));
  Level(root.get());
  const std::unique_ptr<char, FreeText> html(
      cmark_render_html(root.get(), kOptions, cmark_parser_get_syntax_extensions(parser.get())));
  return Shown(html.get()) + (cut ? "<p>(The rest is left out: it is too long.)</p>\n" : "");
}

}  // namespace assay
