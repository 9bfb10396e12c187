// Operators of the reference that the values do not show: what that means for a verdict. Pure.
#pragma once

#include <string>

#include "model/verdict.h"

namespace assay {

// Returns "the values see 13 of 14 operators; not seen: add in line 21".
std::string CoverageText(const OperatorCoverage& coverage);

// Returns the sentence that says that a kernel without the unseen operators would be as fast as the
// lower end of this interval of the speedup; empty: they take too little of the reference's time.
// With a share s of it left out, a kernel is 1 / (1 - s) times as fast. Of operators that unusual
// draws alone show the longest counts.
std::string UnseenExplains(const OperatorCoverage& coverage, double ci_low);

}  // namespace assay
