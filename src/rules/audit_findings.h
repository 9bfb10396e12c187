// Concludes from the fate of a problem's mutants what is wrong with the problem. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "model/audit.h"
#include "model/dtype.h"

namespace assay {

// Returns true if a mutant that never changed an output says nothing about the problem: an operator
// that adds zero, for example. A mutant whose output is zero, constant or the same without an input
// does say something, and returns false.
bool MayBeEquivalent(const MutantRecord& mutant);

// Returns true if a mutant that computes in `precision` (a class name, or empty) is wrong where
// class `required` must be met. Under an allclose tolerance (`tolerance`) false: the tolerance
// itself says how large an error may be.
bool PrecisionCounts(std::string_view precision, PrecisionClass required, bool tolerance);

// Sets what the draws see of each operator, from the fate of its mutants.
void CoverOperators(const std::vector<MutantRecord>& mutants,
                    std::vector<OperatorRecord>* operators);

// Returns one finding for each surviving mutant, gravest first. A mutant that computes nothing
// (zeros, a constant, a copy...) is a finding as soon as no ordinary draw shows it, because timed
// calls use ordinary draws. Where the problem's only output is wholly zero or constant, that is the
// one finding: other mutants survive because of it.
std::vector<AuditFinding> FindingsOf(const std::vector<MutantRecord>& mutants, int output_count);

}  // namespace assay
