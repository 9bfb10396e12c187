// The ends of candidates, in kinds that a table can count: outcomes, wrong ones by the pattern
// of their errors, fouls by their rule. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/verdict.h"

namespace assay {

// Returns the kind within the outcome: of wrong candidates their mistake, "precision", "part of the
// output"...; of fouls the rule; of unsettled ones the cause. Empty: the outcome says all.
std::string KindOf(const Verdict& verdict);

struct FingerprintRow {
  Outcome outcome = Outcome::kUnsettled;
  std::string kind;               // KindOf()
  int64_t count = 0;              // candidates
  std::vector<int64_t> by_group;  // of these, in the order of Fingerprint::groups
};

struct Fingerprint {
  std::string by;                   // "mechanism" or "level", of the problem; empty: no groups
  std::vector<std::string> groups;  // "fusion", "level 1"
  std::vector<FingerprintRow> rows;
};

// Sorts rows by the stage that their outcomes reached, lowest first; within an outcome the most
// frequent first.
void SortRows(std::vector<FingerprintRow>* rows);

}  // namespace assay
