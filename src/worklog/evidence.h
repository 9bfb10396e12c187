// Evidence in a worklog's facts and words for the lines of a rubric. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worklog/check.h"

namespace assay {

// What did not pass gives no points: without a version that passed gate 1 no line is met, and the
// lines on the attempt by hand ask for one by hand.
struct LineEvidence {
  bool met = false;
  std::string found;                       // in one sentence
  std::vector<std::string> verdicts = {};  // ids
};

struct EvidenceRule {
  std::string_view name;  // "hand-correct"
  LineEvidence (*find)(const Worklog& worklog, const std::vector<Finding>& findings);

  LineEvidence look(const Worklog& worklog, const std::vector<Finding>& findings) const;
};

std::span<const EvidenceRule> AllEvidence();
const EvidenceRule* FindEvidence(std::string_view name);  // null: there is none

}  // namespace assay
