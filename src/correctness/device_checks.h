// Checks calls whose outputs lie on a device. The judge's kernels find there the calls that are
// plainly right; outputs of all others are copied to the host and checked there, which also words
// the failures (gate1_run.h).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "correctness/call_check.h"
#include "correctness/draw_set.h"
#include "gpu/judge_kernels.h"

namespace assay {

struct CheckedCall {
  uint32_t slot, master;
  bool float64;                            // against the oracle; otherwise against native outputs
  bool ordinary;                           // its values are an ordinary draw
  std::span<const ReferenceError> errors;  // of the reference on such values, one an output
};

// Whether denormals may decide about an output: the device's errors are without regard to them, and
// at least as large as those with it.
bool DenormalsDecide(const JudgeKernels::Measured& measured, DType dtype);

// Returns CheckCall's result for each call that is plainly right, and nullopt for each that the
// host must check. Returns an empty list if outputs lie on the host, or the problem's own check
// judges them.
std::vector<std::optional<CallCheck>> CheckWhereTheyLie(const Oracle& oracle, const LiveSlots& live,
                                                        const HostOutputs& outputs,
                                                        std::span<const CheckedCall> calls,
                                                        const CompareRule& rule);

// The first rows of an output that the host must look at. Its first `leading` dimensions count as
// one, along which it has rows.
struct WrongRows {
  wire::ArgumentSpec rows;  // as an output of its own
  size_t output = 0;        // its number among the outputs
  uint32_t leading = 1;
  int64_t first_row = 0;
};
// Returns all rows of an output, in parts of about 32 MiB: by as many leading dimensions as that
// takes, but not by the last of several. The output has elements and a dimension.
std::vector<WrongRows> PartsOf(const wire::ArgumentSpec& output, size_t number);
// Returns where an element of those rows is in the output.
std::vector<int64_t> IndexInOutput(const WrongRows& wrong, const wire::ArgumentSpec& output,
                                   std::vector<int64_t> index);
// Returns such rows of a call that is not plainly right; nullopt where its outputs are small enough
// to be looked at whole, are no floating-point numbers, or where no part of them is wrong alone.
std::optional<WrongRows> FindWrongRows(const Oracle& oracle, const LiveSlots& live,
                                       const HostOutputs& outputs, const CheckedCall& call,
                                       const CompareRule& rule);

// Returns true if an input that forward changes is plainly wrong as it was before the call: off by
// more than twice the bound. False if a device cannot decide that.
bool InputsFailPlainly(const Oracle& oracle, uint32_t master, const CompareRule& rule);

// The reference on one draw: its own errors, one an output, and why the draw can judge nothing
// (DrawIsMeaningful, without the element's place); empty: it can.
struct ReferenceOnDraw {
  std::vector<ReferenceError> errors;
  std::string reason;
};
// Returns that of the draw of this kind in `master`, as the device measures it. nullopt: the host
// must look, as always where draws that the judge learns from are not plainly meaningful.
std::optional<ReferenceOnDraw> ReferenceWhereItLies(const Oracle& oracle, uint32_t master,
                                                    wire::DrawKind kind, bool special_values);

}  // namespace assay
