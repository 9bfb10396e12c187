// From what became of a problem's mutants to what is wrong with the problem. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "model/audit.h"
#include "model/dtype.h"

namespace assay {

// Whether a mutant that never changed an output says nothing: an operator that adds zero, say. That
// an output is zero, constant, or the same without an input does say something.
bool MayBeEquivalent(const MutantRecord& mutant);

// Whether a mutant that computes in `precision` (a class name, or empty) is wrong where `required`
// must be met, or under a tolerance, which says itself how much may be off.
bool PrecisionCounts(std::string_view precision, PrecisionClass required, bool tolerance);

// One finding a surviving mutant, gravest first. What a candidate gives that computes nothing of
// the kind (zeros, a constant, a copy...) is a finding already where no ordinary draw shows it:
// timed calls are made of those. Where the whole of a problem's only output is zero or constant,
// whatever else survives does so because of it and is no finding of its own.
std::vector<AuditFinding> FindingsOf(const std::vector<MutantRecord>& mutants, int output_count);

}  // namespace assay
