// Reads the reference host's account of a problem's work (estimate.py) and derives a verdict's
// figures from it. Pure; the text comes from another process and is checked.
#pragma once

#include <string_view>

#include "base/result.h"
#include "model/problem.h"
#include "model/verdict.h"

namespace assay {

// Errors (kEnvironment): text that no reference host writes.
Result<WorkAccount> ParseWorkAccount(std::string_view json);

// Returns compulsory bytes and operations of one call: the suite's figures, otherwise those of the
// signature and the operators.
Work WorkOf(const ProblemDescription& description, const WorkAccount& account);
Work WorkOf(uint64_t read_bytes, uint64_t written_bytes, const WorkAccount& account);

// Sums over the operators.
double CountedOperations(const WorkAccount& account);
double UnfusedBytes(const WorkAccount& account);
// Returns the share of the operations in matrix products, convolutions and attention, which a GPU's
// matrix units can do; 1 if it is not known.
double MatrixShare(const WorkAccount& account);
// Returns the vendor's libraries that the operators need: a sum of wire::kUsesProducts and
// wire::kUsesConvolutions.
uint64_t LibrariesOf(const WorkAccount& account);

}  // namespace assay
