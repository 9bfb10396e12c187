// An audit for people: a row a problem, and below each degenerate one what passes and what would
// mend it.
#pragma once

#include <string>
#include <vector>

#include "model/audit.h"
#include "report/frame.h"

namespace assay {

std::string RenderAudit(const std::vector<ProblemAudit>& audits, const CardStyle& style);

// A margin in two digits, where 1 is the bound; "> 1e6" beyond every bound.
std::string FormatMargin(double margin);

}  // namespace assay
