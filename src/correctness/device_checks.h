// Checks of calls whose outputs lie on a device: what is plainly right is found there, by the
// judge's kernels; all else is copied to the host and looked at there (gate1_run.h), which finds
// the words for it.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "correctness/call_check.h"
#include "correctness/draw_set.h"

namespace assay {

struct CheckedCall {
  uint32_t slot, master;
  bool float64;   // against the oracle; else natively
  bool ordinary;  // values of an ordinary draw
};

// What CheckCall says of each call that is plainly right; nothing for those that the host must look
// at, and an empty list where outputs lie on the host.
std::vector<std::optional<CallCheck>> CheckWhereTheyLie(const Oracle& oracle, const LiveSlots& live,
                                                        const HostOutputs& outputs,
                                                        std::span<const CheckedCall> calls,
                                                        const CompareRule& rule,
                                                        std::span<const ReferenceError> errors);

// The reference's own errors on the draw in `master`, one an output, where they are measured on the
// device and the draw says something (DrawIsMeaningful); else nothing.
std::optional<std::vector<ReferenceError>> ReferenceErrorsWhereTheyLie(const Oracle& oracle,
                                                                       uint32_t master,
                                                                       bool special_values);

// Whether outputs of the judge's own making are plainly wrong on the draw in `master`: twice as far
// off as is allowed, or more. False where that cannot be said on a device.
bool FailPlainly(const Oracle& oracle, const std::byte* outputs, uint32_t master,
                 const CompareRule& rule);

}  // namespace assay
