// Reading verdicts by the thousand, without what only a closer look needs: the raw samples and
// draws are most of a verdict's text. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"

namespace assay {

// The verdicts of one text, told apart but not yet read.
struct VerdictTexts {
  std::vector<std::string_view> documents;  // each points into the text
  std::string fault;  // why nothing after the last document could be told apart; mostly empty
};

// Takes one verdict, or a list of them as `assay judge --json` prints for several candidates.
// `one_a_line`: JSON lines; a line that was cut off spoils no other.
VerdictTexts SplitVerdicts(std::string_view text, bool one_a_line);

// As VerdictFromJson, but `samples`, `log`, `work`, `roofline`, `kernels`, `profile`, the signature
// and the draws stay empty: they are passed over unread, which takes a quarter of the time. The
// errors are the same, and one more: a text that ends too early is said to be cut off.
Result<Verdict> VerdictOutlineFromJson(std::string_view text);

}  // namespace assay
