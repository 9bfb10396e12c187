// The author's Markdown as HTML. Raw HTML in it stays out, and links lead to pages or places alone.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace assay {

// Headings become headings of the third level. Text beyond kProseShownMax is cut, and says so.
inline constexpr size_t kProseShownMax = 256 << 10;
std::string ProseHtml(std::string_view markdown);

}  // namespace assay
