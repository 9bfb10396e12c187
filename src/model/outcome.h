// The outcomes of a judgement of one candidate, and one table of their facts. Exit codes, scores,
// cards and results in other formats all ask this table; docs/verdict.md shows it.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace assay {

enum class Outcome {
  kFaster,
  kSlower,
  kTie,
  kNotFaster,
  kCorrect,
  kUnsettled,
  kWrong,
  kWeightsDiffer,
  kBuildFailed,
  kCrashed,
  kTimedOut,
  kOutOfMemory,
  kFoul,
};

// The last stage that the candidate passed.
enum class Reached { kNothing, kBuilt, kRan, kCorrect };

struct OutcomeFacts {
  Outcome outcome;
  std::string_view name;  // as in JSON: "faster", "build_failed"...
  int exit_code;          // of `assay judge`
  Reached reached;
  std::string_view meaning;
};

std::span<const OutcomeFacts> AllOutcomes();
const OutcomeFacts& FactsOf(Outcome outcome);

inline std::string_view OutcomeName(Outcome outcome) { return FactsOf(outcome).name; }
inline bool IsCorrect(Outcome outcome) { return FactsOf(outcome).reached == Reached::kCorrect; }
std::optional<Outcome> OutcomeFromName(std::string_view name);

}  // namespace assay
