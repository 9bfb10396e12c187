// What a problem must do, as the reference host accounts for it (estimate.py), and what a verdict
// says of it. Pure; the text comes from another process and is read with suspicion.
#pragma once

#include <string_view>

#include "base/result.h"
#include "model/problem.h"
#include "model/verdict.h"

namespace assay {

// Errors (kEnvironment): not what a reference host writes.
Result<WorkAccount> ParseWorkAccount(std::string_view json);

// Compulsory bytes and operations of one call: what the suite says, else the signature and the
// operators.
Work WorkOf(const ProblemDescription& description, const WorkAccount& account);
Work WorkOf(uint64_t read_bytes, uint64_t written_bytes, const WorkAccount& account);

// Sums over the operators.
double CountedOperations(const WorkAccount& account);
double UnfusedBytes(const WorkAccount& account);
// Which share of the operations is in matrix products, convolutions and attention, which a GPU's
// matrix units can do; 1 where nobody knows.
double MatrixShare(const WorkAccount& account);

}  // namespace assay
