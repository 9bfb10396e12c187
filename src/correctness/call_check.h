// One call's outputs against the oracle's, or against the reference's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/verdict.h"
#include "rules/gate1.h"
#include "sides/live_host.h"
#include "values/oracle.h"

namespace assay {

// The class of the outputs' own dtypes (of the first floating-point one; kExact without one):
// results are rounded to it, so errors show no finer class.
PrecisionClass FinestClass(const wire::Plan& plan);

// How outputs are compared: as asked, else as the problem's suite says, else by the outputs' own
// class. Errors (kUsage): no such class or tolerance.
Result<CompareRule> RuleFor(const ProblemRequest& problem, const std::string& asked_precision,
                            const std::string& asked_tolerance, PrecisionClass finest);

// An output as its plan describes it, without addresses.
OutputView ViewOf(const wire::ArgumentSpec& argument);
// Views of each output of a master slot, with `candidate` bytes from elsewhere (null: the
// reference's own).
std::vector<OutputView> OutputViews(const Oracle& oracle, uint32_t master,
                                    const std::byte* candidate, bool float64);

// One call's output against what was expected.
struct CallCheck {
  bool passed = true;
  double error_ratio = 0;
  double max_abs_error = 0;
  PrecisionClass shown = PrecisionClass::kFloat64;
  bool meets_a_class = true;  // false: beyond every class, and `shown` says nothing
  std::optional<Mismatch> mismatch;
  std::string hint;
  bool lacked_memory = false;  // nothing was written, for want of memory, as the host says
  // Where rounding moves the truth (rules/moved_elements.h), of `elements` in all; the errors above
  // are of the others.
  int64_t left_out = 0, elements = 0;
  bool could_not_ask = false;  // whether rounding explains it: a second reference was in trouble
};

// Compares what a host left in `slot` with a master. `float64`: against the oracle; else natively
// with `errors`.
CallCheck CheckCall(const Oracle& oracle, const LiveSlots& live, const LiveHost& host,
                    uint32_t slot, uint32_t master, bool float64, const CompareRule& rule,
                    std::span<const ReferenceError> errors, const HintContext& context);

// The same for a slot of outputs that lies anywhere. Without a hint, whose search passes over the
// outputs several times more.
CallCheck CheckWithoutHint(const Oracle& oracle, const std::byte* written, uint32_t master,
                           bool float64, const CompareRule& rule,
                           std::span<const ReferenceError> errors);
// With one.
CallCheck CheckOutputs(const Oracle& oracle, const std::byte* written, uint32_t master,
                       bool float64, const CompareRule& rule,
                       std::span<const ReferenceError> errors, const HintContext& context);

// Guards of all slots and the poison of those that were not called: a message when the host wrote
// where it must not.
std::optional<std::string> FindStrayWrites(const LiveSlots& live, const LiveHost& host,
                                           std::span<const uint32_t> called);

}  // namespace assay
