// Runs gate 1: the draws, made once and kept for all candidates, and each candidate's calls on
// them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "judge/gate1.h"
#include "model/verdict.h"
#include "pipeline/candidate.h"
#include "pipeline/live_slots.h"
#include "pipeline/oracle.h"

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
  // Where rounding moves the truth (judge/moved_elements.h), of `elements` in all; the errors above
  // are of the others.
  int64_t left_out = 0, elements = 0;
  bool could_not_ask = false;  // whether rounding explains it: a second reference was in trouble
};

class DrawSet {
 public:
  // Makes the draws under seeds from `seed`; learns the reference's own error. Errors: the
  // reference fails on ordinary values. Uses master slots from 0; where they do not all fit, draws
  // are made anew for each candidate. Kinds in `skip` are recorded as dropped.
  static HostResult<DrawSet> Make(Oracle& oracle, const CompareRule& rule, uint64_t seed,
                                  std::span<const wire::DrawKind> skip,
                                  const std::function<void(size_t, size_t)>& progress);

  const std::vector<Draw>& draws() const { return draws_; }
  uint32_t slots_used() const { return slots_used_; }
  // The unusual ones that are kept in masters, with their float64 side: for timed blocks.
  std::vector<Draw> Kept() const;
  const std::vector<ReferenceError>& reference_errors() const { return errors_; }  // one an output
  // Why the problem can be solved without computing anything ("all zeros pass gate 1"); empty: it
  // cannot.
  const std::string& degenerate() const { return degenerate_; }
  // The master slot with this draw's values, made anew where it was not kept; its version of the
  // weights is then in place.
  HostResult<uint32_t> Master(Oracle& oracle, size_t index) const;

 private:
  std::vector<Draw> draws_;
  uint32_t slots_used_ = 0;
  std::vector<ReferenceError> errors_;
  std::string degenerate_;
};

struct Gate1Result {
  Correctness correctness;
  bool lacked_memory = false;  // why it has not passed
  bool could_not_ask = false;  // as CallCheck's
  double call_ns = 0;          // shortest single call, for calibration alone
  int64_t timed_ns = 0;        // inside blocks
};

// Runs the candidate on every draw in one fresh host. A failed comparison is a result with passed
// false; trouble with the host is the error, with `hint` text in its message where a fault explains
// it.
struct Gate1Setup {
  Oracle& oracle;
  const OracleOptions& options;  // of a second reference at this size
  LiveSlots& live;
  const DrawSet& draws;
  CompareRule rule;
  std::string tolerance_text;
  double call_timeout_s = 10;
  std::function<void(size_t, size_t)> progress;
};
HostResult<Gate1Result> RunGate1(const Gate1Setup& setup, LiveHost& host);

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
