// Evidence in a worklog's facts and words for the lines of a rubric. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worklog/check.h"

namespace assay {

struct LineEvidence {
  bool met = false;
  std::string found;                       // in one sentence
  std::vector<std::string> verdicts = {};  // ids
};

struct EvidenceRule {
  std::string_view name;  // "gates"
  LineEvidence (*look)(const Worklog& worklog, const std::vector<Finding>& findings);
};

std::span<const EvidenceRule> AllEvidence();
const EvidenceRule* FindEvidence(std::string_view name);  // null: there is none

}  // namespace assay
