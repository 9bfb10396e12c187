// A worklog as one HTML page that stands alone: no scripts, nothing from elsewhere, light or dark
// as the reader's browser asks, good on paper. Pure.
#pragma once

#include <string>
#include <string_view>

#include "worklog/worklog.h"

namespace assay {

enum class PageKind {
  kReport,
  kPresentation,  // five full screens, without sources and samples
};

// It ends with a seal (seal.h) that names the hash of the worklog as Markdown, `markdown_hash`.
// All that sources, prompts, answers, compilers and words say is text in the page.
std::string RenderWorklogPage(const Worklog& worklog, PageKind kind,
                              std::string_view markdown_hash);

}  // namespace assay
