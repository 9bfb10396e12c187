// Faults of outputs that show without a right answer beside them, for problems whose own check
// judges: elements that were never written, and NaN or infinities where the reference has none. A
// check that compares by `abs(a - b) > limit` lets NaN pass. Pure.
#pragma once

#include <optional>
#include <string>

#include "rules/gate1.h"

namespace assay {

// Returns the fault of an output; nullopt: it has none. The reference's output
// decides whether NaN and infinities may be there: if it has any, they are left to the check.
// `poison`: the byte that filled the output before the call. Of outputs with one byte an element
// the poison may be an answer: only those that hold nothing else are unwritten, but for bool, which
// it is no value of.
std::optional<Hint> PlainFault(const OutputView& output, std::byte poison);

}  // namespace assay
