// Compares one call's outputs with the oracle's, or with the reference's own.
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

// Returns the class of the first floating-point output's dtype; kExact if there is none. Results
// are rounded to it, so errors show no finer class.
PrecisionClass FinestClass(const wire::Plan& plan);

// Returns the rule for comparing outputs: as asked, otherwise the suite's, otherwise the outputs'
// own class. Errors (kUsage): no such class or tolerance.
// `asks_for_nan`: unless the problem says otherwise, outputs must be right on them.
Result<CompareRule> RuleFor(const ProblemRequest& problem, const std::string& asked_precision,
                            const std::string& asked_tolerance, PrecisionClass finest,
                            bool asks_for_nan = false);
// The same for the oracle's reference.
Result<CompareRule> RuleFor(const ProblemRequest& problem, const std::string& asked_precision,
                            const std::string& asked_tolerance, const Oracle& oracle);

// Returns the view of an output as its plan describes it, without addresses.
OutputView ViewOf(const wire::ArgumentSpec& argument);
// Returns views of each output of a master slot. `candidate`: the slot of outputs to compare; null:
// the reference's own. `float64`: with the oracle's values.
std::vector<OutputView> OutputViews(const Oracle& oracle, uint32_t master,
                                    const std::byte* candidate, bool float64);
// Returns the same views with each output's scale on ordinary draws, which `errors` has.
std::vector<OutputView> OutputViews(const Oracle& oracle, uint32_t master,
                                    const std::byte* candidate, bool float64,
                                    std::span<const ReferenceError> errors);

struct ByteRange {
  uint64_t begin = 0, size_bytes = 0;
};

// The result of comparing one call's outputs.
struct CallCheck {
  bool passed = true;
  double error_ratio = 0;
  double max_abs_error = 0;
  PrecisionClass shown = PrecisionClass::kFloat64;
  bool meets_a_class = true;  // false: beyond every class; `shown` has no meaning
  std::optional<Mismatch> mismatch;
  std::string hint;
  Mistake mistake = Mistake::kNone;    // as the hint describes it
  std::optional<PrecisionClass> fits;  // as Hint's
  bool stray = false;                  // it wrote where it must not
  bool lacked_memory = false;          // nothing was written; the host says that memory ran out
  bool not_here = false;               // the host says that it needs what this machine lacks
  // Elements whose truth rounding moves (rules/moved_elements.h), of `elements` in all; the errors
  // above are of the others.
  int64_t left_out = 0, elements = 0;
  // If rounding explains it, or what indices select: the reference that knows failed.
  bool could_not_ask = false;
  bool by_check = false;  // it failed by the problem's own check (own_check.h)
  // Of an output that is too large to be looked at whole: the rows that the rest describes, as
  // bytes of a slot. Rounding alone cannot explain them.
  std::optional<ByteRange> part;
  // Set, and not passed: the problem's own check gave no answer. That is never the host's fault.
  std::optional<HostTrouble> trouble;
};

// Compares a host's outputs in `slot` with a master. If the problem has a check of its own, that
// judges them, and `rule` and `errors` are not used. Integer outputs that differ from the
// reference's are compared once more, by what they select (rules/selection.h): that asks the
// oracle's host. `float64`: against the oracle; otherwise
// against native outputs, with `errors`.
CallCheck CheckCall(Oracle& oracle, const LiveSlots& live, const LiveHost& host, uint32_t slot,
                    uint32_t master, bool float64, const CompareRule& rule,
                    std::span<const ReferenceError> errors, const HintContext& context);

// The same for outputs at any address, without a hint: the search for one passes over the outputs
// several times more.
CallCheck CheckWithoutHint(Oracle& oracle, const std::byte* written, uint32_t master, bool float64,
                           const CompareRule& rule, std::span<const ReferenceError> errors);
// The same with a hint.
CallCheck CheckOutputs(Oracle& oracle, const std::byte* written, uint32_t master, bool float64,
                       const CompareRule& rule, std::span<const ReferenceError> errors,
                       const HintContext& context);

// Checks the guards of the called slots and the poison of the others. Returns a message if the host
// wrote where it must not.
std::optional<std::string> FindStrayWrites(const LiveSlots& live, const LiveHost& host,
                                           std::span<const uint32_t> called);

}  // namespace assay
