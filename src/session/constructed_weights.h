// Judges a Python candidate once more on the weights that its constructor makes, where the
// reference's cannot be set in it: constructors run under one seed, so both may be the same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/event.h"
#include "session/workbench.h"
#include "sides/weights_match.h"

namespace assay {

class Session;

// Returns the floating-point parameters whose elements are all equal. With such weights a kernel
// that ignores them is right, so that nothing is proven.
std::vector<std::string> UniformParameters(const wire::Plan& plan,
                                           const std::vector<std::byte>& constructed);

// "its weights differ from the reference's, of which it lacks a, b"
std::string DifferingWeights(const WeightsMatch& match);

// Says in a wrong verdict that the candidate is right with the same weights in all calls.
// `has_other_sizes`: there are such, at which it was not tried.
void SayRightWithConstant(bool has_other_sizes, Verdict* verdict);

// What was found on the weights as constructed.
struct ConstructedFinding {
  WeightsMatch match;
  std::vector<std::string> uniform;  // UniformParameters()
  bool may_prepare = false;          // the user allowed to prepare weights once
};

// Returns the verdict to give. `first`: wrong, or weights_differ. `constructed`: on the weights as
// constructed. That one stands if it is correct and no parameter is uniform; but a win on weights
// that may be prepared once has to be asked for, and is `unsettled`.
Verdict ConcludeConstructed(Verdict first, Verdict constructed, const ConstructedFinding& finding);

// Has a session of its own, once it is needed.
class ConstructedWeights {
 public:
  explicit ConstructedWeights(const Workbench& bench);
  ~ConstructedWeights();
  ConstructedWeights(const ConstructedWeights&) = delete;
  ConstructedWeights& operator=(const ConstructedWeights&) = delete;

  // Judges the candidate of `first`, and returns the verdict to give. Errors: kInterrupted;
  // kUnjudged with kTooLarge where memory is short beside other judges. Other trouble is in the
  // verdict's message.
  Result<Verdict> Judge(const CandidateSource& source, const WeightsMatch& match,
                        const SessionAsked& asked, const JudgeEvents& events, Verdict first);

 private:
  Result<Verdict> JudgeInSession(const CandidateSource& source, SessionAsked asked,
                                 const JudgeEvents& events, ConstructedFinding* finding,
                                 bool is_whole);

  const Workbench& bench_;
  std::unique_ptr<Session> session_;
};

}  // namespace assay
