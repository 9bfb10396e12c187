#include "model/outcome.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace assay {
namespace {

constexpr std::array<OutcomeFacts, 13> kOutcomes{{
    {Outcome::kFaster, "faster", 0, Reached::kCorrect, "correct, and faster than was asked for"},
    {Outcome::kSlower, "slower", 1, Reached::kCorrect, "correct, and slower"},
    {Outcome::kTie, "tie", 1, Reached::kCorrect, "correct, and no difference is visible"},
    {Outcome::kNotFaster, "not_faster", 1, Reached::kCorrect,
     "correct, and not faster; slower or a tie was not pursued"},
    {Outcome::kCorrect, "correct", 0, Reached::kCorrect,
     "correct; correctness alone was asked for"},
    {Outcome::kUnsettled, "unsettled", 7, Reached::kCorrect,
     "correct, but whether it is faster cannot be said"},
    {Outcome::kWrong, "wrong", 3, Reached::kRan, "an output is wrong"},
    {Outcome::kWeightsDiffer, "weights_differ", 3, Reached::kBuilt,
     "its outputs are wrong, and its parameters cannot be matched with the reference's"},
    {Outcome::kBuildFailed, "build_failed", 4, Reached::kNothing, "it does not build or load"},
    {Outcome::kCrashed, "crashed", 5, Reached::kBuilt, "its process died"},
    {Outcome::kTimedOut, "timed_out", 5, Reached::kBuilt, "a step took longer than its limit"},
    {Outcome::kOutOfMemory, "out_of_memory", 5, Reached::kBuilt,
     "it needed more memory than it may"},
    {Outcome::kFoul, "foul", 6, Reached::kBuilt, "it broke a rule: caught cheating"},
}};

}  // namespace

std::span<const OutcomeFacts> AllOutcomes() { return kOutcomes; }

const OutcomeFacts& FactsOf(Outcome outcome) {
  const auto found = std::find_if(kOutcomes.begin(), kOutcomes.end(),
                                  [&](const auto& facts) { return facts.outcome == outcome; });
  ASSAY_CHECK(found != kOutcomes.end());
  return *found;
}

std::optional<Outcome> OutcomeFromName(std::string_view name) {
  for (const OutcomeFacts& facts : kOutcomes)
    if (facts.name == name) return facts.outcome;
  return std::nullopt;
}

}  // namespace assay
