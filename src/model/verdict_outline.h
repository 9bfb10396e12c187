// Reads verdicts by the thousand, without raw samples, draws and other details: these are most of a
// verdict's text. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/verdict.h"

namespace assay {

// The verdicts of one text, separated but not yet parsed.
struct VerdictTexts {
  std::vector<std::string_view> documents;  // each points into the text
  std::string fault;  // reason why the text after the last document is no verdict; mostly empty
};

// Takes one verdict, or a list of them as `assay judge --json` prints for several candidates.
// `one_a_line`: JSON lines; a truncated line spoils no other.
VerdictTexts SplitVerdicts(std::string_view text, bool one_a_line);

// As VerdictFromJson, but passes over `samples`, `log`, `work`, `roofline`, `kernels`, `profile`,
// `sustained`, the signature and the draws, which stay empty. The errors are the same, and one
// more: a text that ends too early is said to be cut off.
Result<Verdict> VerdictOutlineFromJson(std::string_view text);

}  // namespace assay
