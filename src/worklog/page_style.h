// The style and the small pieces of a worklog's page. Pure.
#pragma once

#include <string>
#include <string_view>

#include "worklog/mechanism.h"

namespace assay {

std::string PageStyle();
// The head of a page up to its <main>. `kind`: a class of the whole; may be empty.
std::string PageHead(std::string_view title, std::string_view kind);

// Foreign text for an element or an attribute, on one line.
std::string HtmlText(std::string_view text);
// Text of several lines for a <pre>: characters that nobody can see become '?'.
std::string HtmlLines(std::string_view text);
// A unified diff, with a class for each line that was added or taken out.
std::string DiffHtml(std::string_view diff);
// "<details><summary>...", with the content given as HTML.
std::string FoldedHtml(std::string_view summary, std::string_view content, bool on_paper);
std::string ScrollingPre(std::string_view html, std::string_view label);
std::string_view EvidenceWord(Evidence::Kind kind);  // "found", "against", "open"

}  // namespace assay
