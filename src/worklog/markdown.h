// A worklog as Markdown: five sections, facts and words. Pure.
#pragma once

#include <string>

#include "worklog/worklog.h"

namespace assay {

// Foreign text stands in code, or escaped; the author's prose stands as it was written.
std::string RenderMarkdown(const Worklog& worklog);

// Text that Markdown shows as it is, on one line.
std::string MarkdownEscaped(std::string_view text);
// A code block that no text in it can end.
std::string MarkdownFence(std::string_view text, std::string_view language);

}  // namespace assay
