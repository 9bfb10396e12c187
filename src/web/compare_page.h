// Two verdicts side by side: the difference of the sources, and whether the difference in speed is
// real. Pure.
#pragma once

#include <optional>
#include <string>

#include "web/verdict_page.h"

namespace assay {

struct CompareView {
  VerdictView a, b;
  // A judgement of b against a, pair by pair; nullopt: nobody has asked for it.
  std::optional<BaselineResult> paired = {};
  std::string paired_verdict = {};  // its id
  int64_t job = 0;                  // that judges it now; 0: none
  bool may_ask = false;             // the viewer may ask for it
};

std::string RenderComparePage(const CompareView& view, PageFrame frame);

// A comparison without a paired judgement, in one sentence.
std::string UnpairedText(const Verdict& a, const Verdict& b);

}  // namespace assay
