// A worklog as one HTML page that stands alone: no scripts, nothing from elsewhere, light or dark
// as the reader's browser asks, good on paper. Pure.
#pragma once

#include <string>

#include "worklog/worklog.h"

namespace assay {

enum class PageKind {
  kReport,
  kPresentation,  // five full screens, without sources and samples
};

// Whatever sources, prompts, answers, compilers and words say, it is text in the page.
std::string RenderWorklogPage(const Worklog& worklog, PageKind kind = PageKind::kReport);

}  // namespace assay
